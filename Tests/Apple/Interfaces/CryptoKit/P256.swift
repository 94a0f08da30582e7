internal import COpenSSL
public import Foundation

/// https://developer.apple.com/documentation/cryptokit/sharedsecret
public struct SharedSecret: ContiguousBytes, Sendable {
    let bytes: [UInt8]

    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}

/// https://developer.apple.com/documentation/cryptokit/p256
public enum P256 {
    /// https://developer.apple.com/documentation/cryptokit/p256/keyagreement
    public enum KeyAgreement {
        /// https://developer.apple.com/documentation/cryptokit/p256/keyagreement/publickey
        public struct PublicKey: Sendable {
            public let x963Representation: Data

            public init<Bytes>(x963Representation: Bytes) throws where Bytes: ContiguousBytes {
                let bytes = x963Representation.withUnsafeBytes { [UInt8]($0) }
                _ = try Point(bytes)
                self.x963Representation = Data(bytes)
            }
        }

        /// https://developer.apple.com/documentation/cryptokit/p256/keyagreement/privatekey
        public struct PrivateKey: Sendable {
            public let publicKey: PublicKey
            public let rawRepresentation: Data

            public init(compactRepresentable: Bool = true) {
                while true {
                    var number = [UInt8](repeating: 0, count: 32)
                    RAND_bytes(&number, 32)
                    if let key = try? PrivateKey(rawRepresentation: number) {
                        self = key
                        return
                    }
                }
            }

            public init<Bytes>(rawRepresentation: Bytes) throws where Bytes: ContiguousBytes {
                let number = rawRepresentation.withUnsafeBytes { [UInt8]($0) }
                publicKey = try PublicKey(x963Representation: Point(generatorTimes: number).form)
                self.rawRepresentation = Data(number)
            }

            /// https://developer.apple.com/documentation/cryptokit/p256/keyagreement/privatekey/x963representation
            public var x963Representation: Data { publicKey.x963Representation + rawRepresentation }

            /// https://developer.apple.com/documentation/cryptokit/p256/keyagreement/privatekey/sharedsecretfromkeyagreement(with:)
            public func sharedSecretFromKeyAgreement(
                with publicKeyShare: P256.KeyAgreement.PublicKey
            ) throws -> SharedSecret {
                let peer = try Point([UInt8](publicKeyShare.x963Representation))
                let common = try Point(peer, times: [UInt8](rawRepresentation))
                return SharedSecret(bytes: Array(try common.form[1...32]))
            }
        }
    }
}

extension P256 {
    /// https://developer.apple.com/documentation/cryptokit/p256/signing
    public enum Signing {
        /// https://developer.apple.com/documentation/cryptokit/p256/signing/ecdsasignature
        public struct ECDSASignature: Sendable {
            public let rawRepresentation: Data

            public init<D>(rawRepresentation: D) throws where D: DataProtocol {
                guard rawRepresentation.count == 64 else { throw CryptoKitError.incorrectParameterSize }
                self.rawRepresentation = Data(rawRepresentation)
            }
        }

        /// https://developer.apple.com/documentation/cryptokit/p256/signing/publickey
        public struct PublicKey: Sendable {
            private let form: [UInt8]

            public init<Bytes>(x963Representation: Bytes) throws where Bytes: ContiguousBytes {
                form = x963Representation.withUnsafeBytes { [UInt8]($0) }
                _ = try Point(form)
            }

            /// https://developer.apple.com/documentation/cryptokit/p256/signing/publickey/isvalidsignature(_:for:)-6ezyv
            public func isValidSignature<D>(_ signature: ECDSASignature, for data: D) -> Bool where D: DataProtocol {
                let key = saltern_EVP_PKEY_new_P256(form, nil)
                defer { EVP_PKEY_free(key) }
                let digest = hash(data)
                let isValid = saltern_ECDSA_P256_verify(key, digest, [UInt8](signature.rawRepresentation))
                ERR_clear_error()
                return isValid == 1
            }
        }

        /// https://developer.apple.com/documentation/cryptokit/p256/signing/privatekey
        public struct PrivateKey: Sendable {
            private let pair: P256.KeyAgreement.PrivateKey
            public let publicKey: PublicKey

            public init<Bytes>(rawRepresentation: Bytes) throws where Bytes: ContiguousBytes {
                pair = try P256.KeyAgreement.PrivateKey(rawRepresentation: rawRepresentation)
                publicKey = try PublicKey(x963Representation: pair.publicKey.x963Representation)
            }

            /// https://developer.apple.com/documentation/cryptokit/p256/signing/privatekey/signature(for:)-8bt3s
            public func signature<D>(for data: D) throws -> ECDSASignature where D: DataProtocol {
                let key = saltern_EVP_PKEY_new_P256(
                    [UInt8](pair.publicKey.x963Representation), [UInt8](pair.rawRepresentation))
                defer { EVP_PKEY_free(key) }
                var signature = [UInt8](repeating: 0, count: 64)
                guard saltern_ECDSA_P256_sign(key, hash(data), &signature) == 1 else {
                    throw CryptoKitError.underlyingCoreCryptoError(error: -1)
                }
                return try ECDSASignature(rawRepresentation: signature)
            }
        }

        private static func hash(_ data: some DataProtocol) -> [UInt8] {
            var hash = SHA256()
            [UInt8](data).withUnsafeBytes { hash.update(bufferPointer: $0) }
            return hash.finalize().withUnsafeBytes { [UInt8]($0) }
        }
    }
}

/// Owns an `EC_POINT *` of P-256, and its group.
private final class Point {
    private let group: OpaquePointer
    private let point: OpaquePointer

    private init() throws {
        guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), let point = EC_POINT_new(group) else {
            throw CryptoKitError.underlyingCoreCryptoError(error: -1)
        }
        self.group = group
        self.point = point
    }

    deinit {
        EC_POINT_free(point)
        EC_GROUP_free(group)
    }

    convenience init(_ form: [UInt8]) throws {
        try self.init()
        guard form.count == 65, EC_POINT_oct2point(group, point, form, form.count, nil) == 1 else {
            ERR_clear_error()
            throw CryptoKitError.incorrectParameterSize
        }
    }

    convenience init(generatorTimes number: [UInt8]) throws {
        try self.init()
        try multiply(number) { EC_POINT_mul(group, point, $0, nil, nil, nil) }
    }

    convenience init(_ other: Point, times number: [UInt8]) throws {
        try self.init()
        try multiply(number) { EC_POINT_mul(group, point, nil, other.point, $0, nil) }
    }

    private func multiply(_ number: [UInt8], _ body: (OpaquePointer?) -> Int32) throws {
        let factor = BN_bin2bn(number, Int32(number.count), nil)
        defer { BN_clear_free(factor) }
        guard number.count == 32, BN_is_zero(factor) == 0, BN_cmp(factor, EC_GROUP_get0_order(group)) < 0,
            body(factor) == 1
        else { throw CryptoKitError.incorrectParameterSize }
    }

    /// The uncompressed form.
    var form: [UInt8] {
        get throws {
            var form = [UInt8](repeating: 0, count: 65)
            guard EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &form, 65, nil) == 65 else {
                throw CryptoKitError.underlyingCoreCryptoError(error: -1)
            }
            return form
        }
    }
}
