internal import COpenSSL
public import Foundation

/// https://developer.apple.com/documentation/cryptokit/aes
public enum AES {
    /// https://developer.apple.com/documentation/cryptokit/aes/gcm
    public enum GCM {
        /// https://developer.apple.com/documentation/cryptokit/aes/gcm/nonce
        public struct Nonce: Sendable {
            let bytes: [UInt8]

            /// https://developer.apple.com/documentation/cryptokit/aes/gcm/nonce/init()
            public init() {
                var bytes = [UInt8](repeating: 0, count: 12)
                RAND_bytes(&bytes, 12)
                self.bytes = bytes
            }

            /// https://developer.apple.com/documentation/cryptokit/aes/gcm/nonce/init(data:)
            public init<D>(data: D) throws where D: DataProtocol {
                guard data.count >= 12 else { throw CryptoKitError.incorrectParameterSize }
                bytes = [UInt8](data)
            }
        }

        /// https://developer.apple.com/documentation/cryptokit/aes/gcm/sealedbox
        public struct SealedBox: Sendable {
            public let nonce: Nonce
            public let ciphertext: Data
            public let tag: Data

            /// https://developer.apple.com/documentation/cryptokit/aes/gcm/sealedbox/combined
            public var combined: Data? { nonce.bytes.count == 12 ? Data(nonce.bytes) + ciphertext + tag : nil }

            /// https://developer.apple.com/documentation/cryptokit/aes/gcm/sealedbox/init(combined:)
            public init<D>(combined: D) throws where D: DataProtocol {
                let bytes = [UInt8](combined)
                guard bytes.count >= 28 else { throw CryptoKitError.incorrectParameterSize }
                try self.init(
                    nonce: Nonce(data: bytes[..<12]), ciphertext: bytes[12...].dropLast(16), tag: bytes.suffix(16))
            }

            /// https://developer.apple.com/documentation/cryptokit/aes/gcm/sealedbox/init(nonce:ciphertext:tag:)
            public init<C, T>(nonce: AES.GCM.Nonce, ciphertext: C, tag: T) throws
            where C: DataProtocol, T: DataProtocol {
                guard tag.count == 16 else { throw CryptoKitError.incorrectParameterSize }
                self.nonce = nonce
                self.ciphertext = Data(ciphertext)
                self.tag = Data(tag)
            }
        }

        /// https://developer.apple.com/documentation/cryptokit/aes/gcm/seal(_:using:nonce:authenticating:)
        public static func seal<Plaintext, AuthenticatedData>(
            _ message: Plaintext, using key: SymmetricKey, nonce: AES.GCM.Nonce? = nil,
            authenticating authenticatedData: AuthenticatedData
        ) throws -> AES.GCM.SealedBox where Plaintext: DataProtocol, AuthenticatedData: DataProtocol {
            let nonce = nonce ?? Nonce()
            var tag = [UInt8](repeating: 0, count: 16)
            let sealed = try run(
                [UInt8](message), key, nonce, [UInt8](authenticatedData), encrypts: true
            ) { saltern_EVP_CIPHER_CTX_get_tag($0, 16, &tag) == 1 }
            return try SealedBox(nonce: nonce, ciphertext: sealed, tag: tag)
        }

        /// https://developer.apple.com/documentation/cryptokit/aes/gcm/open(_:using:authenticating:)
        public static func open<AuthenticatedData>(
            _ sealedBox: AES.GCM.SealedBox, using key: SymmetricKey, authenticating authenticatedData: AuthenticatedData
        ) throws -> Data where AuthenticatedData: DataProtocol {
            let tag = [UInt8](sealedBox.tag)
            return Data(
                try run(
                    [UInt8](sealedBox.ciphertext), key, sealedBox.nonce, [UInt8](authenticatedData), encrypts: false
                ) { saltern_EVP_CIPHER_CTX_set_tag($0, 16, tag) == 1 })
        }

        /// - Parameter tag: Gets the tag after sealing, and sets it before opening.
        private static func run(
            _ input: [UInt8], _ key: SymmetricKey, _ nonce: Nonce, _ authenticated: [UInt8], encrypts: Bool,
            tag: (OpaquePointer?) -> Bool
        ) throws -> [UInt8] {
            let context = EVP_CIPHER_CTX_new()
            defer { EVP_CIPHER_CTX_free(context) }
            let key = key.withUnsafeBytes { [UInt8]($0) }
            guard key.count == 32 else { throw CryptoKitError.incorrectKeySize }
            var output = [UInt8](repeating: 0, count: input.count + 16)
            var count: Int32 = 0
            var rest: Int32 = 0
            guard EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nil, nil, nil, encrypts ? 1 : 0) == 1,
                saltern_EVP_CIPHER_CTX_set_iv_length(context, Int32(nonce.bytes.count)) == 1,
                EVP_CipherInit_ex(context, nil, nil, key, nonce.bytes, encrypts ? 1 : 0) == 1,
                EVP_CipherUpdate(context, nil, &count, authenticated, Int32(authenticated.count)) == 1,
                EVP_CipherUpdate(context, &output, &count, input, Int32(input.count)) == 1,
                encrypts || tag(context)
            else { throw CryptoKitError.underlyingCoreCryptoError(error: -1) }
            guard EVP_CipherFinal_ex(context, &output, &rest) == 1, !encrypts || tag(context) else {
                ERR_clear_error()
                throw CryptoKitError.authenticationFailure
            }
            return Array(output[..<input.count])
        }
    }
}
