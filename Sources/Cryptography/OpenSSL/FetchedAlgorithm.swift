internal import COpenSSL

/// Algorithms that are fetched once for the life of the process.
///
/// OpenSSL 3 otherwise searches its providers by name at every use, under a lock. This costs more than hashing a short
/// message.
///
/// Each owner is immutable and never freed. Sharing it is safe: OpenSSL's fetched objects are constant and
/// reference-counted atomically, and functions take them as `const`.
enum FetchedAlgorithm {
    static let sha256 = Digest("SHA256")
    static let sha1 = Digest("SHA1")
    static let aes256GCM = Cipher("AES-256-GCM")
    static let aes256CBC = Cipher("AES-256-CBC")
    static let hmac = MAC("HMAC")
    static let hkdf = KDF("HKDF")

    /// Owns an `EVP_MD *`. ``FetchedAlgorithm`` states why it is `Sendable`.
    final class Digest: @unchecked Sendable {
        let pointer: OpaquePointer

        init(_ name: String) {
            OpenSSLLibrary.setUp()
            pointer = FetchedAlgorithm.require(EVP_MD_fetch(nil, name, nil), name)
        }

        deinit { EVP_MD_free(pointer) }
    }

    /// Owns an `EVP_CIPHER *`. ``FetchedAlgorithm`` states why it is `Sendable`.
    final class Cipher: @unchecked Sendable {
        let pointer: OpaquePointer

        init(_ name: String) {
            OpenSSLLibrary.setUp()
            pointer = FetchedAlgorithm.require(EVP_CIPHER_fetch(nil, name, nil), name)
        }

        deinit { EVP_CIPHER_free(pointer) }
    }

    /// Owns an `EVP_MAC *`. ``FetchedAlgorithm`` states why it is `Sendable`.
    final class MAC: @unchecked Sendable {
        let pointer: OpaquePointer

        init(_ name: String) {
            OpenSSLLibrary.setUp()
            pointer = FetchedAlgorithm.require(EVP_MAC_fetch(nil, name, nil), name)
        }

        deinit { EVP_MAC_free(pointer) }
    }

    /// Owns an `EVP_KDF *`. ``FetchedAlgorithm`` states why it is `Sendable`.
    final class KDF: @unchecked Sendable {
        let pointer: OpaquePointer

        init(_ name: String) {
            OpenSSLLibrary.setUp()
            pointer = FetchedAlgorithm.require(EVP_KDF_fetch(nil, name, nil), name)
        }

        deinit { EVP_KDF_free(pointer) }
    }

    /// Stops the process when the algorithm is missing. Every OpenSSL 3 has it unless openssl.cnf is broken.
    private static func require(_ pointer: OpaquePointer?, _ name: String) -> OpaquePointer {
        guard let pointer else {
            preconditionFailure("\(OpenSSLError(draining: "OpenSSL does not offer \(name)"))")
        }
        return pointer
    }
}

/// Stops the process when a call failed that can fail only for lack of memory.
///
/// Swift itself stops when memory runs out. This message adds OpenSSL's own reason.
func requireSuccess(_ status: Int32, _ operation: StaticString) {
    precondition(status == 1, "\(OpenSSLError(draining: "\(operation)"))")
}

/// Stops the process when a call that returns a new object failed.
func requireAllocated(_ pointer: OpaquePointer?, _ operation: StaticString) -> OpaquePointer {
    guard let pointer else { preconditionFailure("\(OpenSSLError(draining: "\(operation)"))") }
    return pointer
}
