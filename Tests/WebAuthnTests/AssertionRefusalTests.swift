import Testing
import WebAuthn

struct AssertionRefusalTests {
    typealias Case = Refusal<AssertionCase>

    static let refusals: [Case] = [
        Case("another challenge", .wrongChallenge) { $0.challenge[31] ^= 1 },
        Case("client data of a registration", .wrongType) {
            $0.clientData = Bytes.replacing("webauthn.get", "webauthn.create", in: $0.clientData)
        },
        Case("client data of a payment", .wrongType) {
            $0.clientData = Bytes.replacing("webauthn.get", "payment.get", in: $0.clientData)
        },
        Case("another origin", .wrongOrigin) {
            $0.clientData = Bytes.replacing("https://example.org", "https://example.net", in: $0.clientData)
        },
        Case("http", .wrongOrigin) {
            $0.clientData = Bytes.replacing("https://example.org", "http://example.org", in: $0.clientData)
        },
        Case("a frame of another origin", .crossOrigin) {
            $0.clientData = Bytes.replacing("\"crossOrigin\":false", "\"crossOrigin\":true", in: $0.clientData)
        },
        Case("an origin on top", .crossOrigin) {
            $0.clientData = Bytes.replacing(
                "\"crossOrigin\":false", "\"topOrigin\":\"https://example.org\"", in: $0.clientData)
        },
        Case("client data with a blank more", .wrongSignature) {
            $0.clientData = Bytes.replacing("{", "{ ", in: $0.clientData)
        },
        Case("an RP id hash that is changed", .wrongRelyingParty) { $0.data[31] ^= 1 },
        Case("no user", .userNotPresent) { $0.data[32] &= ~1 },
        Case("a user who is not verified", .userNotVerified) { $0.requiresUserVerification = true },
        Case("a flag of verification that was not signed", .wrongSignature) {
            $0.requiresUserVerification = true
            $0.data[32] |= 4
        },
        Case("a passkey that had no backups", .changedBackupEligibility) { $0.isBackupEligible = false },
        Case("a backup of a passkey that cannot have one", .impossibleBackup) { $0.data[32] = 0x11 },
        Case("a credential", .unexpectedCredential) {
            let created = RegistrationCase()
            $0.data = created.data
        },
        Case("the flag of a credential without one", .malformedAuthenticatorData) { $0.data[32] |= 0x40 },
        Case("bytes behind the authenticator data", .trailingBytes) { $0.data.append(0) },
        Case("authenticator data that end early", .malformedAuthenticatorData) { $0.data.removeLast() },
        Case("no authenticator data", .malformedAuthenticatorData) { $0.data = [] },
        Case("an extension that was not signed", .wrongSignature) {
            $0.data[32] |= 0x80
            $0.data += [0xA0]
        },
        Case("a sign count that was not signed", .wrongSignature) { $0.data[36] = 9 },
        Case("the user handle of another account", .wrongUserHandle) { $0.userHandle = [1, 2, 4] },
        Case("an empty user handle", .wrongUserHandle) { $0.userHandle = [] },
        Case("no user handle where the request names no credentials", .wrongUserHandle) {
            $0.requiresUserHandle = true
        },
        Case("no signature", .wrongSignature) { $0.signature = [] },
        Case("a signature that ends early", .wrongSignature) { $0.signature.removeLast() },
        Case("bytes behind the signature", .wrongSignature) { $0.signature.append(0) },
        Case("a signature of zeros", .wrongSignature) { $0.signature = [0x30, 6, 2, 1, 0, 2, 1, 0] },
        Case("a signature beyond the limit", .tooLong) { $0.signature = [UInt8](repeating: 0, count: 513) },
        Case("no credential id", .wrongCredentialID) { $0.credentialID = [] },
        Case("a credential id of 1,024 bytes", .wrongCredentialID) {
            $0.credentialID = [UInt8](repeating: 0, count: 1_024)
        },
    ]

    @Test(arguments: refusals) func `an assertion is refused`(refusal: Case) throws {
        var assertion = try AssertionCase()
        _ = try assertion.verify()
        refusal.change(&assertion)
        #expect(throws: refusal.failure) { try assertion.verify() }
    }

    @Test func `the key of another passkey does not verify`() throws {
        let others = ["packed-self.ES256", "packed.EdDSA", "RS256 of 2,048 bits"]
        for name in others {
            var assertion = try AssertionCase()
            assertion.key = try RegistrationCase(.named(name)).verify().key
            #expect(throws: WebAuthnFailure.wrongSignature) { try assertion.verify() }
        }
    }

    @Test func `a user handle may be there where the request names credentials`() throws {
        var assertion = try AssertionCase()
        assertion.userHandle = AssertionCase.account
        _ = try assertion.verify()
        assertion.requiresUserHandle = true
        _ = try assertion.verify()
    }

    @Test func `outputs of PRF are part of the signature`() throws {
        for name in ["ES256 with PRF", "EdDSA with PRF", "ES256 with credBlob"] {
            var assertion = try AssertionCase(.named(name))
            _ = try assertion.verify()
            assertion.data[assertion.data.count - 1] ^= 1
            #expect(throws: WebAuthnFailure.wrongSignature) { try assertion.verify() }
        }
    }
}
