"""What went wrong in a handshake, for people, seen from the side where the error came up."""

import ssl

_REASONS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS as new as 1.3",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS as new as 1.3",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not believe whoever signed our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it says that our certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it says that our certificate is revoked",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it says that our certificate is not valid",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it says that our certificate is not valid",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it says that our certificate is not for this purpose",
    "UNEXPECTED_EOF_WHILE_READING": "it hung up during the handshake; does it speak TLS?",
}


def explain(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}".rstrip(".")
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        return _REASONS.get(reason, f"TLS failed: {reason.replace('_', ' ').lower() or error}")
    if isinstance(error, ConnectionError):
        return "it hung up during the handshake; does it speak TLS?"
    return str(error) or type(error).__name__
