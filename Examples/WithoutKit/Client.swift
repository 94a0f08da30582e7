import CommonCrypto
import CryptoKit
import Foundation

enum ClientError: Error { case weakParameters, derivationFailed, notSealed }

/// What a password becomes before anything is sent.
struct StretchedPassword {
    /// For the server.
    let passwordKey: Data
    /// For this device: opens the keyring.
    let unlockKey: SymmetricKey

    static let iterationFloor = 600_000

    init(password: String, salt: String, iterations: Int) throws {
        guard (Self.iterationFloor...10_000_000).contains(iterations) else { throw ClientError.weakParameters }
        let password = password.precomposedStringWithCanonicalMapping.utf8.map { CChar(bitPattern: $0) }
        let salt = Array(salt.utf8)
        var output = [UInt8](repeating: 0, count: 64)
        defer { output.withUnsafeMutableBytes { _ = memset_s($0.baseAddress, $0.count, 0, $0.count) } }
        let status = CCKeyDerivationPBKDF(
            CCPBKDFAlgorithm(kCCPBKDF2), password, password.count, salt, salt.count,
            CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA256), UInt32(iterations), &output, output.count)
        guard status == kCCSuccess else { throw ClientError.derivationFailed }
        passwordKey = Data(output[..<32])
        unlockKey = HKDF<SHA256>.expand(
            pseudoRandomKey: Data(output[32...]), info: Data("keyring".utf8), outputByteCount: 32)
    }
}

/// Sealing in the format `aes-256-gcm`; the item's id is authenticated along.
enum Sealed {
    static func seal(_ plaintext: Data, id: UUID, key: SymmetricKey) throws -> Data {
        guard let bytes = try AES.GCM.seal(plaintext, using: key, authenticating: name(of: id)).combined else {
            throw ClientError.notSealed
        }
        return bytes
    }

    static func open(_ bytes: Data, id: UUID, key: SymmetricKey) throws -> Data {
        try AES.GCM.open(AES.GCM.SealedBox(combined: bytes), using: key, authenticating: name(of: id))
    }

    private static func name(of id: UUID) -> Data { Data(id.uuidString.lowercased().utf8) }
}
