/// HMAC-SHA256 (RFC 2104, RFC 4231).
public enum HMACSHA256 {
    /// Returns the authentication code of one message. For many messages under one key, keep a ``Key``.
    public static func authenticationCode(for message: some ByteSource, using key: some ByteSource) -> SHA256Digest {
        Key(key).authenticationCode(for: message)
    }

    /// A key that was processed once and authenticates any number of messages, from any thread.
    public struct Key: Sendable {
        private let template: HMACContext

        /// Takes a key of any length; RFC 2104 advises 32 bytes or more.
        public init(_ key: some ByteSource) {
            template = HMACContext(.sha256, key: key)
        }

        /// Returns the authentication code of `message`.
        public func authenticationCode(for message: some ByteSource) -> SHA256Digest {
            SHA256Digest { code in
                template.authenticate(message, into: UnsafeMutableBufferPointer(start: code, count: 32))
            }
        }
    }
}

/// HMAC-SHA1, for one-time passwords only: authenticator apps use RFC 4226 and RFC 6238 with SHA-1.
public enum HMACSHA1 {
    /// Returns the 20-byte authentication code of `message`.
    public static func authenticationCode(for message: some ByteSource, using key: some ByteSource) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 20) { code, initialized in
            HMACContext(.sha1, key: key)
                .authenticate(message, into: UnsafeMutableBufferPointer(rebasing: code[..<20]))
            initialized = 20
        }
    }
}

/// The hash functions under HMAC.
enum HMACDigest {
    case sha1, sha256
}
