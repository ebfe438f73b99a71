"""What went wrong on the way to a host, by its name in our tree and in words of our own."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import aiohttp

from turnout.core.errors import Broken, NetError, TimedOut, Unreachable

# Of what a library or a peer says about a failure.
SAID_CHARACTERS = 200


def name_failure(error: Exception, where: str, connect_s: float, wait_s: float) -> NetError:
    """An error of the library or the system by its name in our tree."""
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
            return Broken(f"{where}: what it answered is not HTTP ({said_by(error)})")
        case aiohttp.ClientProxyConnectionError():
            return Unreachable(f"{where}: no connection to the proxy: {_why_lost(error)}")
        case _:
            return Unreachable(f"{where}: {_why_lost(error)}")


def _why_lost(error: Exception) -> str:
    """Why there is no connection, in words of our own: the library's name its calls and its address tuples."""
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
            return f"no connection ({said_by(error)})"


def said_by(error: BaseException) -> str:
    """What an error says, fit for a message."""
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    # The first line: what follows is what the peer sent.
    said = said.strip().partition("\n")[0].rstrip(":")
    return "".join(one for one in said if one.isprintable())[:SAID_CHARACTERS] or type(error).__name__
