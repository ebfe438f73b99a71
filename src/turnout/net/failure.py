"""Turns errors of aiohttp and the system into NetErrors, with messages of our own."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import aiohttp

from turnout.core.errors import Broken, NetError, TimedOut, Unreachable

# Of the text of an error, which may quote what a peer sent.
TEXT_CHARACTERS = 200


def name_failure(error: Exception, where: str, connect_s: float, wait_s: float) -> NetError:
    """The NetError for an error of aiohttp or the system."""
    match error:
        case NetError():
            return error
        case aiohttp.ConnectionTimeoutError():
            return Unreachable(f"{where}: no connection within {connect_s:g} s")
        case TimeoutError():
            return TimedOut(f"{where}: no answer within {wait_s:g} s")
        case aiohttp.ClientHttpProxyError(status=status):
            return Unreachable(f"{where}: the proxy answered {status} to CONNECT")
        case aiohttp.WSServerHandshakeError(status=status):
            return Broken(f"{where}: no WebSocket (HTTP {status})")
        case aiohttp.ClientResponseError():
            return Broken(f"{where}: what it answered is not HTTP ({text_of(error)})")
        case aiohttp.ClientProxyConnectionError():
            return Unreachable(f"{where}: no connection to the proxy: {_why_lost(error)}")
        case _:
            return Unreachable(f"{where}: {_why_lost(error)}")


def _why_lost(error: Exception) -> str:
    """Why there is no connection. The library's own messages name its calls and address tuples."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    match cause:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({cause.verify_message})"
        case ssl.SSLError():
            return f"no TLS with it ({(cause.reason or 'the handshake failed').replace('_', ' ').lower()})"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted"
        case socket.gaierror(errno=socket.EAI_AGAIN):
            return "its name could not be looked up: no name server answered"
        case socket.gaierror():
            return "there is no address of that name"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError() | BrokenPipeError():
            return "it closed the connection without an answer"
        case ConnectionRefusedError():
            return "nothing listens there"
        case OSError(errno=int(number)) if number in errno.errorcode:
            return f"no connection ({os.strerror(number).lower()})"
        case _:
            return f"no connection ({text_of(error)})"


def text_of(error: BaseException) -> str:
    """The text of an error, safe to show."""
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    # Only the first line: the others are what the peer sent.
    text = text.strip().partition("\n")[0].rstrip(":")
    return "".join(filter(str.isprintable, text))[:TEXT_CHARACTERS] or type(error).__name__
