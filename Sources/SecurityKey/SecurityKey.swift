internal import CFIDO2
public import Cryptography
internal import Dispatch
public import SalternClient

/// A security key at a USB port, by the device half of libfido2 (CTAP 2).
///
/// It uses `https://` and the RP id as the origin, as apps for iOS do. The extension hmac-secret is its PRF
/// (WebAuthn Level 3 §10.1.4), always with user verification, because a key has another secret without.
public struct SecurityKey: PasskeyAuthenticator {
    private let pin: @Sendable () throws -> SecureBytes
    private let onTouch: @Sendable () -> Void

    /// - Parameters:
    ///   - pin: Returns the PIN of the key as UTF-8, when it is needed.
    ///   - onTouch: Called before the key waits for a touch.
    public init(pin: @escaping @Sendable () throws -> SecureBytes, onTouch: @escaping @Sendable () -> Void) {
        self.pin = pin
        self.onTouch = onTouch
    }

    public func create(_ options: PasskeyCreationOptions) async throws(PasskeyError) -> PasskeyRegistration {
        try await Self.blocking { () throws(PasskeyError) in
            let device = try Device.open()
            let selection = options.authenticatorSelection
            // A key with a PIN creates nothing without it.
            let verification = try verification(
                device, isNeeded: device.hasPIN || selection.userVerification == "required")
            let clientData = ClientData.bytes("webauthn.create", options.challenge, site: options.rp.id)
            let credential = try CredentialObject.make(
                options, clientData, isResident: selection.residentKey == "required")
            try credential.setVerification(verification.isBuiltIn)
            onTouch()
            try verification.pin.withText { pin throws(PasskeyError) in
                try check(fido_dev_make_cred(device.pointer, credential.pointer, pin))
            }
            return PasskeyRegistration(
                id: credential.id, clientDataJSON: clientData, attestationObject: credential.attestationObject,
                publicKeyAlgorithm: Int(credential.algorithm))
        }
    }

    public func get(
        _ options: PasskeyRequestOptions, prf input: [UInt8]?
    ) async throws(PasskeyError) -> PasskeyAnswer {
        try await Self.blocking { () throws(PasskeyError) in
            let device = try Device.open()
            let verification = try verification(
                device, isNeeded: input != nil || options.userVerification == "required")
            let clientData = ClientData.bytes("webauthn.get", options.challenge, site: options.rpId)
            let assertion = try AssertionRequest.make(options, clientData, salt: input.map { ClientData.salt(of: $0) })
            try assertion.setVerification(verification.isBuiltIn)
            onTouch()
            try verification.pin.withText { pin throws(PasskeyError) in
                try check(fido_dev_get_assert(device.pointer, assertion.pointer, pin))
            }
            // Of several passkeys of one site a key returns the latest first.
            guard fido_assert_count(assertion.pointer) > 0 else { throw .noPasskey }
            let allowed = options.allowCredentials
            let id = assertion.id ?? (allowed.count == 1 ? allowed[0].id.bytes : [])
            return PasskeyAnswer(
                PasskeyAssertion(
                    id: id, clientDataJSON: clientData, authenticatorData: try assertion.authenticatorData,
                    signature: assertion.signature, userHandle: assertion.userHandle), output: assertion.output)
        }
    }

    // MARK: User verification

    private struct Verification {
        /// Nil when the key verifies its user itself, or need not.
        var pin: SecureBytes?
        /// True for a key with a fingerprint sensor.
        var isBuiltIn = false
    }

    private func verification(_ device: borrowing Device, isNeeded: Bool) throws(PasskeyError) -> Verification {
        guard isNeeded else { return Verification() }
        if device.hasOwnVerification { return Verification(isBuiltIn: true) }
        guard device.hasPIN, let pin = try? pin() else { throw .notVerified }
        return Verification(pin: pin)
    }

    /// Runs a body that waits for the key on a thread of its own.
    private static func blocking<Result: Sendable>(
        _ body: @escaping @Sendable () throws(PasskeyError) -> Result
    ) async throws(PasskeyError) -> Result {
        let result = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let result: Swift.Result<Result, PasskeyError>
                do throws(PasskeyError) { result = .success(try body()) } catch { result = .failure(error) }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }
}

extension SecureBytes? {
    /// Calls a body with the bytes as a C string, which is zeroed afterwards; with nil for none.
    fileprivate func withText(
        _ body: (UnsafePointer<CChar>?) throws(PasskeyError) -> Void
    ) throws(PasskeyError) {
        guard let self else { return try body(nil) }
        let text = SecureBytes(count: self.count + 1) { target in
            self.withUnsafeBytes { target.copyMemory(from: $0) }
            target[target.count - 1] = 0
        }
        try text.withUnsafeBytes { bytes throws(PasskeyError) in
            try body(bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
        }
    }
}

/// Throws the error of a status of libfido2.
func check(_ status: CInt) throws(PasskeyError) {
    switch status {
    case FIDO_OK: return
    case FIDO_ERR_CREDENTIAL_EXCLUDED: throw .exists
    case FIDO_ERR_NO_CREDENTIALS, FIDO_ERR_INVALID_CREDENTIAL: throw .noPasskey
    case FIDO_ERR_TIMEOUT, FIDO_ERR_USER_ACTION_TIMEOUT, FIDO_ERR_ACTION_TIMEOUT, FIDO_ERR_OPERATION_DENIED,
        FIDO_ERR_KEEPALIVE_CANCEL:
        throw .cancelled
    case FIDO_ERR_PIN_INVALID, FIDO_ERR_PIN_AUTH_INVALID, FIDO_ERR_PIN_NOT_SET, FIDO_ERR_PIN_REQUIRED,
        FIDO_ERR_UV_INVALID:
        throw .notVerified
    case FIDO_ERR_PIN_BLOCKED, FIDO_ERR_PIN_AUTH_BLOCKED, FIDO_ERR_UV_BLOCKED: throw .pinLocked
    case FIDO_ERR_UNSUPPORTED_EXTENSION: throw .doesNotUnlock
    default: throw .failed
    }
}

/// The parts of a ceremony that a browser makes, and a client without browser makes itself.
enum ClientData {
    /// The client data (WebAuthn Level 3 §5.8.1). The site is a domain name and needs no escaping.
    static func bytes(_ type: String, _ challenge: Base64URLBytes, site: String) -> [UInt8] {
        let challenge = Base64URL.encodeToString(challenge.bytes)
        return Array(
            #"{"type":"\#(type)","challenge":"\#(challenge)","origin":"https://\#(site)","crossOrigin":false}"#.utf8)
    }

    /// The salt of hmac-secret for an input of PRF (WebAuthn Level 3 §10.1.4).
    static func salt(of input: [UInt8]) -> [UInt8] {
        SHA256.hash(Array("WebAuthn PRF".utf8) + [0] + input).bytes
    }

    /// Returns the content of a byte string of CBOR (RFC 8949 §3.1).
    static func content(ofByteString bytes: [UInt8]) throws(PasskeyError) -> [UInt8] {
        let head: Int
        let count: Int
        guard let first = bytes.first else { throw .failed }
        switch first {
        case 0x40...0x57: (head, count) = (1, Int(bytes[0]) - 0x40)
        case 0x58 where bytes.count > 1: (head, count) = (2, Int(bytes[1]))
        case 0x59 where bytes.count > 2: (head, count) = (3, Int(bytes[1]) << 8 | Int(bytes[2]))
        default: throw .failed
        }
        guard bytes.count == head + count else { throw .failed }
        return Array(bytes[head...])
    }
}
