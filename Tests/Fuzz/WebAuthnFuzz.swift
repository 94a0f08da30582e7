import Cryptography
import Foundation
import HTTPCore

@testable import WebAuthn

/// `clientdata`, `attestation` or `authenticator`: the part of WebAuthn that reads the input.
private let reader = ProcessInfo.processInfo.environment["SALTERN_FUZZ_READER"] ?? "attestation"

private let relyingParty: RelyingParty = {
    do {
        return try RelyingParty(id: "example.org", origins: ["https://example.org"])
    } catch {
        preconditionFailure("the relying party is valid: \(error)")
    }
}()

/// A key that has signed none of the inputs (RFC 8032 §7.1, test 1).
private let key: CredentialKey = {
    do {
        let bytes = Hex.decode("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
        return try CredentialKey(algorithm: .edDSA, bytes: bytes ?? [])
    } catch {
        preconditionFailure("the key is valid: \(error)")
    }
}()

private func readClientData(_ input: [UInt8]) {
    for ceremony in [ClientData.Ceremony.registration, .assertion] {
        guard let data = try? ClientData(input, ceremony: ceremony) else { continue }
        guard case .object(let object)? = try? JSONParser().parse(input) else {
            preconditionFailure("client data are a JSON object")
        }
        precondition(input.count <= ClientData.byteLimit, "the length is limited")
        precondition(object["type"] == .string(ceremony.rawValue), "the type is the ceremony's")
        precondition(object["challenge"] == .string(Base64URL.encodeToString(data.challenge)), "base64url is canonical")
        precondition(object["crossOrigin"] != .bool(true) && object["topOrigin"] == nil, "no frame of another origin")
    }
}

private func check(_ data: AuthenticatorData) {
    precondition(data.bytes.count <= AuthenticatorData.byteLimit, "the length is limited")
    precondition(!data.flags.contains(.backedUp) || data.flags.contains(.backupEligible), "BS implies BE")
    precondition((data.credential != nil) == data.flags.contains(.attestedCredential), "AT and the credential")
    guard let credential = data.credential else { return }
    precondition((1...AuthenticatorData.credentialIDLimit).contains(credential.id.count), "the id's length is limited")
    let stored = try? CredentialKey(algorithm: credential.key.algorithm, bytes: credential.key.bytes)
    precondition(stored == credential.key, "a key that was accepted can be stored")
}

private func readAttestation(_ input: [UInt8]) {
    guard let object = try? AttestationObject(input) else { return }
    check(object.authenticatorData)
    precondition((try? AttestationObject(input + [0])) == nil, "no byte is behind")
}

private func readAuthenticatorData(_ input: [UInt8]) {
    guard let data = try? AuthenticatorData(input[...]) else { return }
    check(data)
    let clientData = [UInt8](#"{"type":"webauthn.get","challenge":"AAEC","origin":"https://example.org"}"#.utf8)
    let signature = [UInt8](repeating: 7, count: 64)
    let assertion = try? Assertion(
        credentialID: [1], clientDataJSON: clientData, authenticatorData: input, signature: signature, userHandle: nil)
    precondition((assertion == nil) == (data.credential != nil), "an assertion has no credential")
    let verified = try? assertion?.verify(
        for: relyingParty, challenge: [0, 1, 2], requiresUserVerification: false,
        Assertion.Expectation(
            key: key, signCount: 0, isBackupEligible: data.flags.contains(.backupEligible), userHandle: [],
            requiresUserHandle: false))
    precondition(verified == nil, "nobody has signed it")
}

/// libFuzzer calls this with one input after another; a trap is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    switch reader {
    case "clientdata": readClientData(input)
    case "attestation": readAttestation(input)
    default: readAuthenticatorData(input)
    }
    return 0
}
