internal import Cryptography
internal import HTTPCore
public import Postgres

/// Signs identity tokens from a given time on.
public struct SigningKey: Sendable {
    /// The time of its first use.
    public let usableFrom: Timestamp
    /// The key's name in tokens: its thumbprint (RFC 7638).
    public let id: String
    let key: ES256.SigningKey
    /// The private key in the form of the file.
    let stored: P256.PrivateKey
    /// The first part of each token that the key signs. All tokens of a key have the same header, and the server
    /// accepts only tokens that begin with it. So it never reads an algorithm, type or key from a token.
    let header: String

    init(_ stored: P256.PrivateKey, usableFrom: Timestamp) throws(P256.Failure) {
        self.usableFrom = usableFrom
        self.stored = stored
        key = try ES256.SigningKey(stored)
        let coordinates = Coordinates(stored.publicKey)
        // The members in the order of their names, without white space (RFC 7638 §3).
        let members = #"{"crv":"P-256","kty":"EC","x":"\#(coordinates.x)","y":"\#(coordinates.y)"}"#
        id = Base64URL.encodeToString(SHA256.hash(members.utf8).bytes)
        header = Base64URL.encodeToString(#"{"alg":"ES256","typ":"at+jwt","kid":"\#(id)"}"#.utf8)
    }

    /// Generates a random key.
    static func generate(usableFrom: Timestamp) throws(P256.Failure) -> SigningKey {
        try SigningKey(.generate(), usableFrom: usableFrom)
    }

    /// The point in base64url.
    private struct Coordinates {
        let x: String
        let y: String

        init(_ key: P256.PublicKey) {
            x = Base64URL.encodeToString(Array(key.bytes[1..<33]))
            y = Base64URL.encodeToString(Array(key.bytes[33..<65]))
        }
    }

    /// Writes the public key (RFC 7517 §4, RFC 7518 §6.2.1).
    func writePublicKey(to writer: inout JSONWriter) {
        let coordinates = Coordinates(key.publicKey)
        writer.object { writer in
            writer.member("kty", "EC")
            writer.member("crv", "P-256")
            writer.member("x", coordinates.x)
            writer.member("y", coordinates.y)
            writer.member("use", "sig")
            writer.member("alg", "ES256")
            writer.member("kid", id)
        }
    }
}
