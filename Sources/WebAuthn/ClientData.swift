internal import Cryptography
internal import HTTPCore

/// Parses the client data of a browser or a platform (WebAuthn Level 3 §5.8.1).
///
/// Members that the specification does not name are allowed, because clients may add some. Repeated names are rejected.
public struct ClientData: Sendable {
    /// The ceremony of the client data.
    public enum Ceremony: String, Sendable {
        case registration = "webauthn.create"
        case assertion = "webauthn.get"
    }

    /// The longest client data, in bytes.
    public static let byteLimit = 4_096

    private static let parser = JSONParser(depthLimit: 8, memberLimit: 64, valueLimit: 256)

    public let ceremony: Ceremony
    /// The challenge that the authenticator has signed.
    public let challenge: [UInt8]
    public let origin: String
    /// SHA-256 of the received bytes.
    let hash: SHA256Digest

    /// Parses client data of a ceremony. Does not compare the origin and the challenge.
    /// - Throws: ``WebAuthnFailure``, also if the ceremony ran in a frame of another origin.
    public init(_ bytes: [UInt8], ceremony: Ceremony) throws(WebAuthnFailure) {
        guard bytes.count <= Self.byteLimit else { throw .clientDataTooLong }
        guard case .object(let object)? = try? Self.parser.parse(bytes), case .string(let type)? = object["type"],
            case .string(let challenge)? = object["challenge"], case .string(let origin)? = object["origin"],
            let decoded = try? challenge.withUTF8({ try Base64URL.decode(UnsafeRawBufferPointer($0)) })
        else { throw .clientDataMalformed }
        guard type == ceremony.rawValue else { throw .wrongType }
        switch object["crossOrigin"] {
        case nil, .bool(false): break
        case .bool(true): throw .crossOrigin
        default: throw .clientDataMalformed
        }
        if object["topOrigin"] != nil { throw .crossOrigin }
        self.ceremony = ceremony
        self.challenge = decoded
        self.origin = origin.string
        hash = SHA256.hash(bytes)
    }
}
