/// Parses the attestation object of a registration (WebAuthn Level 3 §6.5).
///
/// The server requests no attestation. So the statement must be CBOR, and its content is ignored.
struct AttestationObject {
    /// The longest object, in bytes. Unrequested statements contain some certificates.
    static let byteLimit = 32_768

    let authenticatorData: AuthenticatorData

    init(_ bytes: [UInt8]) throws(WebAuthnFailure) {
        guard bytes.count <= Self.byteLimit else { throw .tooLong }
        guard case .map(let members) = try CBORValue(decoding: bytes[...]), members.count == 3,
            case .text? = members[.text("fmt")], case .map? = members[.text("attStmt")],
            case .bytes(let data)? = members[.text("authData")]
        else { throw .malformedAttestationObject }
        authenticatorData = try AuthenticatorData(data[...])
    }
}
