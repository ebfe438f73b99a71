#!/usr/bin/env bash
# The real servers that the tests of sources ask, beside the doubles: kiwix-serve and searx from Debian, Home Assistant in
# an environment of its own, hash-locked; LangChain and LlamaIndex; the browser that the console's tests look with, and axe.
# What cannot be had is said, and its tests are skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
packages=(kiwix-tools zim-tools searx chromium)
hass=.real/ha
uv=${UV:-.venv/bin/uv}

has() { command -v "$1" >/dev/null; }

if ! { has kiwix-serve && has zimwriterfs && has searx-run && has chromium; }; then
  if has apt-get && [ "$(id -u)" = 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
      echo "not installed: ${packages[*]} (apt-get failed)"
  else
    echo "not installed: run as root: apt-get install --no-install-recommends ${packages[*]}"
  fi
fi

# This release is the last for Python 3.11.
if ! [ -x "$hass/bin/hass" ]; then
  python=$(command -v python3.11 || echo .venv/bin/python)
  { "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' && "$python" -m venv "$hass" &&
    "$uv" pip install --quiet --python "$hass/bin/python" --require-hashes -r requirements/homeassistant.txt; } ||
    { echo "not installed: Home Assistant (Python 3.11 and a package index are needed)" && rm -rf "$hass"; }
fi

# What finds out whether people can use the console who do not see, or have no mouse: axe-core, pinned by its hash.
axe=4.14.0
axe_sha512=9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==
if ! [ -f ".real/axe/$axe/axe.min.js" ]; then
  got=$(mktemp -d)
  { has npm && (cd "$got" && npm pack --silent "axe-core@$axe" >/dev/null 2>&1) &&
    [ "$(openssl dgst -sha512 -binary "$got/axe-core-$axe.tgz" | base64 -w0)" = "$axe_sha512" ] &&
    tar -xzf "$got/axe-core-$axe.tgz" -C "$got" package/axe.min.js &&
    mkdir -p ".real/axe/$axe" && mv "$got/package/axe.min.js" ".real/axe/$axe/"; } ||
    echo "not installed: axe-core $axe (npm, openssl and a registry are needed, and the very file that was pinned)"
  rm -rf "$got"
fi

# The libraries that the page on one's own RAG is run with.
if ! [ -d .real/rag ]; then
  "$uv" pip install --quiet --python .venv/bin/python --target .real/rag --require-hashes -r requirements/rag.txt ||
    { echo "not installed: LangChain and LlamaIndex (a package index is needed)" && rm -rf .real/rag; }
fi
exit 0
