import Testing
import WebAuthn

struct RegistrationRefusalTests {
    typealias Case = Refusal<RegistrationCase>

    /// Offsets in the authenticator data of `none.ES256`.
    private static let (flags, idLength, key) = (32, 53, 87)

    static let refusals: [Case] = [
        Case("another challenge", .wrongChallenge) { $0.challenge[0] ^= 1 },
        Case("a challenge that is longer", .wrongChallenge) { $0.challenge.append(0) },
        Case("no challenge", .wrongChallenge) { $0.challenge = [] },
        Case("client data of an assertion", .wrongType) {
            $0.clientData = Bytes.replacing("webauthn.create", "webauthn.get", in: $0.clientData)
        },
        Case("another origin", .wrongOrigin) {
            $0.clientData = Bytes.replacing("https://example.org", "https://example.com", in: $0.clientData)
        },
        Case("an origin with a port", .wrongOrigin) {
            $0.clientData = Bytes.replacing("https://example.org", "https://example.org:8443", in: $0.clientData)
        },
        Case("an origin below that is not allowed", .wrongOrigin) {
            $0.clientData = Bytes.replacing("https://example.org", "https://a.example.org", in: $0.clientData)
        },
        Case("another id beside the attestation object", .wrongCredentialID) { $0.credentialID[0] ^= 1 },
        Case("another RP id", .wrongRelyingParty) {
            $0.relyingParty.id = "sub.example.org"
            $0.relyingParty.origins = ["https://sub.example.org"]
            $0.clientData = Bytes.replacing("https://example.org", "https://sub.example.org", in: $0.clientData)
        },
        Case("an RP id hash that is changed", .wrongRelyingParty) { $0.data[0] ^= 1 },
        Case("no user", .userNotPresent) { $0.data[flags] &= ~1 },
        Case("a user who is not verified", .userNotVerified) { $0.requiresUserVerification = true },
        Case("a backup of a passkey that cannot have one", .impossibleBackup) { $0.data[flags] &= ~8 },
        Case("no credential", .missingCredential) {
            $0.data = [UInt8]($0.data.prefix(37))
            $0.data[flags] &= ~0x40
        },
        Case("a credential without its flag", .trailingBytes) { $0.data[flags] &= ~0x40 },
        Case("the flag of extensions without any", .malformedCBOR) { $0.data[flags] |= 0x80 },
        Case("extensions without their flag", .trailingBytes) { $0.data += [0xA0] },
        Case("extensions that are no map", .malformedAuthenticatorData) {
            $0.data[flags] |= 0x80
            $0.data += [0x80]
        },
        Case("an extension whose name is a number", .malformedAuthenticatorData) {
            $0.data[flags] |= 0x80
            $0.data += [0xA1, 1, 1]
        },
        Case("bytes behind extensions", .trailingBytes) {
            $0.data[flags] |= 0x80
            $0.data += [0xA0, 0]
        },
        Case("an extension twice", .duplicateKey) {
            $0.data[flags] |= 0x80
            $0.data += [0xA2, 0x61, 0x61, 0xF5, 0x61, 0x61, 0xF4]
        },
        Case("authenticator data that end in the head", .malformedAuthenticatorData) {
            $0.data = [UInt8]($0.data.prefix(36))
        },
        Case("authenticator data that end in the AAGUID", .malformedAuthenticatorData) {
            $0.data = [UInt8]($0.data.prefix(54))
        },
        Case("authenticator data that end in the credential id", .malformedAuthenticatorData) {
            $0.data = [UInt8]($0.data.prefix(86))
        },
        Case("authenticator data that end in the key", .malformedCBOR) { $0.data.removeLast() },
        Case("a credential id of no bytes", .malformedAuthenticatorData) { $0.data[idLength + 1] = 0 },
        Case("a credential id of 1,024 bytes", .malformedAuthenticatorData) {
            $0.data = $0.data[..<idLength] + [4, 0] + [UInt8](repeating: 0, count: 1_024) + $0.data[key...]
        },
        Case("authenticator data beyond the limit", .tooLong) { $0.data += [UInt8](repeating: 0, count: 8_192) },
        Case("an algorithm that is not the key's", .wrongAlgorithm) { $0.algorithm = -8 },
        Case("an algorithm that the server does not ask for", .wrongAlgorithm) { $0.algorithm = -35 },
        Case("a key of an algorithm that the server does not ask for", .unsupportedAlgorithm) {
            $0.data[key + 4] = 0x27 + 2
        },
        Case("a key that says EdDSA and is ES256", .malformedKey) { $0.data[key + 4] = 0x27 },
        Case("a key of another type", .malformedKey) { $0.data[key + 2] = 1 },
        Case("a key of another curve", .malformedKey) { $0.data[key + 6] = 2 },
        Case("a key without an algorithm", .malformedKey) { $0.data[key + 3] = 4 },
        Case("a key with another member", .malformedKey) {
            $0.data[key] = 0xA6
            $0.data += [0x04, 0x00]
        },
        Case("a key with its private half", .malformedKey) {
            $0.data[key] = 0xA6
            $0.data += [0x23, 0x58, 32] + [UInt8](repeating: 1, count: 32)
        },
        Case("a key with a member twice", .duplicateKey) { $0.data[key + 5] = 0x03 },
        Case("a point that is not on the curve", .malformedKey) { $0.data[$0.data.count - 1] ^= 1 },
        Case("a compressed point", .malformedKey) {
            $0.data = $0.data[..<($0.data.count - 34)] + [0xF5]
        },
        Case("a key that is an array", .malformedKey) { $0.data = $0.data[..<key] + [0x80] },
        Case("bytes behind the attestation object", .trailingBytes) { $0.attestationObject.append(0) },
        Case("an attestation object that ends early", .malformedCBOR) { $0.attestationObject.removeLast() },
        Case("no attestation object", .malformedCBOR) { $0.attestationObject = [] },
        Case("an attestation object that is an array", .malformedAttestationObject) { $0.attestationObject = [0x80] },
        Case("an attestation object without members", .malformedAttestationObject) { $0.attestationObject = [0xA0] },
        Case("an attestation object with another member", .malformedAttestationObject) {
            $0.attestationObject[0] = 0xA4
            $0.attestationObject += [0x61, 0x61, 0xF5]
        },
        Case("an attestation object with a member twice", .duplicateKey) {
            $0.attestationObject[0] = 0xA4
            $0.attestationObject += [0x63, 0x66, 0x6D, 0x74, 0x64, 0x6E, 0x6F, 0x6E, 0x65]
        },
        Case("an attestation object of an unknown length", .indefiniteLength) {
            $0.attestationObject[0] = 0xBF
            $0.attestationObject.append(0xFF)
        },
        Case("an attestation object with a tag", .tagged) { $0.attestationObject.insert(0xC0, at: 0) },
        Case("a statement that is no map", .malformedAttestationObject) {
            $0.attestationObject[Bytes.position(of: "attStmt", in: $0.attestationObject)] = 0x80
        },
        Case("a format that is no text", .malformedAttestationObject) {
            $0.attestationObject[5] = 0x44
        },
        Case("an attestation object beyond the limit", .tooLong) {
            $0.attestationObject += [UInt8](repeating: 0, count: 32_768)
        },
        Case("a map of four thousand million members", .malformedCBOR) {
            $0.attestationObject = [0xBA, 0xFF, 0xFF, 0xFF, 0xFF] + $0.attestationObject.dropFirst()
        },
    ]

    @Test(arguments: refusals) func `a registration is refused`(refusal: Case) throws {
        var registration = RegistrationCase()
        _ = try registration.verify()
        refusal.change(&registration)
        #expect(throws: refusal.failure) { try registration.verify() }
    }

    @Test func `unknown extensions of a registration are ignored`() throws {
        var registration = RegistrationCase()
        registration.data[32] |= 0x80
        registration.data += [0xA1, 0x61, 0x61, 0x82, 0xF9, 0x3C, 0x00, 0xF6]
        _ = try registration.verify()
    }
}
