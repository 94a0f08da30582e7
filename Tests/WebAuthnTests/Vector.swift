import Cryptography
import Foundation
import Testing
import WebAuthn

/// A registration and an assertion of vectors.json.
struct Vector: Decodable, CustomTestStringConvertible {
    struct Created: Decodable {
        let challenge: Base64URLBytes
        let credentialId: Base64URLBytes
        let publicKeyAlgorithm: Int
        let clientDataJSON: Base64URLBytes
        let attestationObject: Base64URLBytes
    }

    struct Asserted: Decodable {
        let challenge: Base64URLBytes
        let clientDataJSON: Base64URLBytes
        let authenticatorData: Base64URLBytes
        let signature: Base64URLBytes
    }

    let name: String
    let registration: Created
    let assertion: Asserted

    var testDescription: String { name }

    private struct File: Decodable {
        let specification: [Vector]
        let own: [Vector]
    }

    private static let file: File = {
        let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "vectors.json")
        do {
            return try JSONDecoder().decode(File.self, from: Data(contentsOf: url))
        } catch {
            preconditionFailure("vectors.json is readable: \(error)")
        }
    }()

    static let specification = file.specification
    static let own = file.own
    static let all = specification + own

    static func named(_ name: String) -> Vector {
        guard let vector = all.first(where: { $0.name == name }) else { preconditionFailure("there is \(name)") }
        return vector
    }
}

struct Base64URLBytes: Decodable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        bytes = try Base64URL.decode([UInt8](try decoder.singleValueContainer().decode(String.self).utf8))
    }
}

/// A vector's registration, which a test may change before it is verified.
struct RegistrationCase {
    var relyingParty = RelyingPartyCase()
    var challenge: [UInt8]
    var credentialID: [UInt8]
    var algorithm: Int
    var clientData: [UInt8]
    var attestationObject: [UInt8]
    var requiresUserVerification = false

    init(_ vector: Vector = .named("none.ES256")) {
        challenge = vector.registration.challenge.bytes
        credentialID = vector.registration.credentialId.bytes
        algorithm = vector.registration.publicKeyAlgorithm
        clientData = vector.registration.clientDataJSON.bytes
        attestationObject = vector.registration.attestationObject.bytes
    }

    /// The authenticator data, which are the last member, without their CBOR head.
    var data: [UInt8] {
        get {
            let head = Bytes.position(of: "authData", in: attestationObject)
            return [UInt8](attestationObject[(head + (attestationObject[head] == 0x58 ? 2 : 3))...])
        }
        set {
            let head = Bytes.position(of: "authData", in: attestationObject)
            attestationObject = attestationObject[..<head] + [0x59] + Bytes.two(newValue.count) + newValue
        }
    }

    func verify() throws(WebAuthnFailure) -> PasskeyRegistration.Passkey {
        let registration = try PasskeyRegistration(
            credentialID: credentialID, clientDataJSON: clientData, attestationObject: attestationObject,
            algorithm: algorithm)
        return try registration.verify(
            for: relyingParty.value, challenge: challenge, requiresUserVerification: requiresUserVerification)
    }
}

/// A vector's assertion, which a test may change before it is verified.
struct AssertionCase {
    var relyingParty = RelyingPartyCase()
    var challenge: [UInt8]
    var credentialID: [UInt8]
    var clientData: [UInt8]
    var data: [UInt8]
    var signature: [UInt8]
    var userHandle: [UInt8]?
    var key: CredentialKey
    var signCount: UInt32
    var isBackupEligible: Bool
    var requiresUserHandle = false
    var requiresUserVerification = false
    static let account: [UInt8] = [1, 2, 3]

    init(_ vector: Vector = .named("none.ES256")) throws {
        let passkey = try RegistrationCase(vector).verify()
        challenge = vector.assertion.challenge.bytes
        credentialID = passkey.credentialID
        clientData = vector.assertion.clientDataJSON.bytes
        data = vector.assertion.authenticatorData.bytes
        signature = vector.assertion.signature.bytes
        key = passkey.key
        signCount = passkey.signCount
        isBackupEligible = passkey.isBackupEligible
    }

    func verify() throws(WebAuthnFailure) -> Assertion.Verified {
        let assertion = try Assertion(
            credentialID: credentialID, clientDataJSON: clientData, authenticatorData: data, signature: signature,
            userHandle: userHandle)
        return try assertion.verify(
            for: relyingParty.value, challenge: challenge, requiresUserVerification: requiresUserVerification,
            Assertion.Expectation(
                key: key, signCount: signCount, isBackupEligible: isBackupEligible, userHandle: Self.account,
                requiresUserHandle: requiresUserHandle))
    }
}

struct RelyingPartyCase {
    var id = "example.org"
    var origins: Set<String> = ["https://example.org"]

    var value: RelyingParty {
        do {
            return try RelyingParty(id: id, origins: origins)
        } catch {
            preconditionFailure("the relying party of a test is valid: \(error)")
        }
    }
}

enum Bytes {
    static func two(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    /// The position behind a text that comes once.
    static func position(of text: String, in bytes: [UInt8]) -> Int {
        let wanted = [UInt8](text.utf8)
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: wanted) }) else {
            preconditionFailure("\(text) is there")
        }
        return start + wanted.count
    }

    /// `bytes` with the first `old` exchanged.
    static func replacing(_ old: String, _ new: String, in bytes: [UInt8]) -> [UInt8] {
        let end = position(of: old, in: bytes)
        return bytes[..<(end - old.utf8.count)] + [UInt8](new.utf8) + bytes[end...]
    }
}

/// A change that makes a valid case invalid, with the failure that it must cause.
struct Refusal<Case: Sendable>: Sendable, CustomTestStringConvertible {
    let name: String
    let failure: WebAuthnFailure
    let change: @Sendable (inout Case) -> Void

    init(_ name: String, _ failure: WebAuthnFailure, _ change: @escaping @Sendable (inout Case) -> Void) {
        self.name = name
        self.failure = failure
        self.change = change
    }

    var testDescription: String { name }
}
