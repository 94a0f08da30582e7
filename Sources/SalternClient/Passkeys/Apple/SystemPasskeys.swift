public import AuthenticationServices
internal import CryptoKit
internal import Cryptography
internal import Foundation

/// The platform's passkeys, by AuthenticationServices.
///
/// The app needs the associated domain `webcredentials:` and the RP id, which the server publishes for
/// `SALTERN_APPLE_APP_IDS`. It has not run on a device yet.
@available(iOS 18, macOS 15, *)
public struct SystemPasskeys: PasskeyAuthenticator {
    private let window: @MainActor @Sendable () -> ASPresentationAnchor

    /// - Parameter window: Returns the window over which the system shows its sheet.
    public init(window: @escaping @MainActor @Sendable () -> ASPresentationAnchor) { self.window = window }

    public func create(_ options: PasskeyCreationOptions) async throws(PasskeyError) -> PasskeyRegistration {
        let result = await Ceremony.run(in: window) {
            let request = Self.provider(options.rp.id).createCredentialRegistrationRequest(
                challenge: Data(options.challenge.bytes), name: options.user.name, userID: Data(options.user.id.bytes))
            request.excludedCredentials = Self.descriptors(options.excludeCredentials)
            request.userVerificationPreference = Self.preference(options.authenticatorSelection.userVerification)
            request.prf = .checkForSupport
            return request
        }
        guard case .registration(let created) = try result.get() else { throw .failed }
        return created
    }

    public func get(
        _ options: PasskeyRequestOptions, prf input: [UInt8]?
    ) async throws(PasskeyError) -> PasskeyAnswer {
        let result = await Ceremony.run(in: window) {
            let request = Self.provider(options.rpId).createCredentialAssertionRequest(
                challenge: Data(options.challenge.bytes))
            request.allowedCredentials = Self.descriptors(options.allowCredentials)
            request.userVerificationPreference = Self.preference(options.userVerification)
            if let input { request.prf = .inputValues(.saltInput1(Data(input))) }
            return request
        }
        guard case .assertion(let answer) = try result.get() else { throw .failed }
        return answer
    }

    private static func provider(_ site: String) -> ASAuthorizationPlatformPublicKeyCredentialProvider {
        ASAuthorizationPlatformPublicKeyCredentialProvider(relyingPartyIdentifier: site)
    }

    private static func descriptors(
        _ passkeys: [PasskeyDescriptor]
    ) -> [ASAuthorizationPlatformPublicKeyCredentialDescriptor] {
        passkeys.map { ASAuthorizationPlatformPublicKeyCredentialDescriptor(credentialID: Data($0.id.bytes)) }
    }

    private static func preference(_ text: String) -> ASAuthorizationPublicKeyCredentialUserVerificationPreference {
        text == "required" ? .required : .preferred
    }
}

/// One sheet of the system and its outcome.
@available(iOS 18, macOS 15, *)
@MainActor private final class Ceremony: NSObject {
    /// The values of a credential.
    enum Outcome: Sendable {
        case registration(PasskeyRegistration)
        case assertion(PasskeyAnswer)
    }

    private let window: @MainActor @Sendable () -> ASPresentationAnchor
    private var continuation: CheckedContinuation<Result<Outcome, PasskeyError>, Never>?
    private var controller: ASAuthorizationController?
    /// The controller does not retain its delegate.
    private var itself: Ceremony?

    private init(_ window: @escaping @MainActor @Sendable () -> ASPresentationAnchor) { self.window = window }

    static func run(
        in window: @escaping @MainActor @Sendable () -> ASPresentationAnchor,
        _ request: @MainActor () -> ASAuthorizationRequest
    ) async -> Result<Outcome, PasskeyError> {
        let ceremony = Ceremony(window)
        let controller = ASAuthorizationController(authorizationRequests: [request()])
        controller.delegate = ceremony
        controller.presentationContextProvider = ceremony
        return await withCheckedContinuation { continuation in
            ceremony.continuation = continuation
            ceremony.controller = controller
            ceremony.itself = ceremony
            controller.performRequests()
        }
    }

    private func end(_ result: Result<Outcome, PasskeyError>) {
        continuation?.resume(returning: result)
        (continuation, controller, itself) = (nil, nil, nil)
    }

    private static func outcome(of credential: any ASAuthorizationCredential) -> Outcome? {
        if let created = credential as? ASAuthorizationPlatformPublicKeyCredentialRegistration {
            guard let object = created.rawAttestationObject else { return nil }
            // The platform's passkeys are of ES256.
            return .registration(
                PasskeyRegistration(
                    id: Array(created.credentialID), clientDataJSON: Array(created.rawClientDataJSON),
                    attestationObject: Array(object), publicKeyAlgorithm: -7))
        }
        guard let used = credential as? ASAuthorizationPlatformPublicKeyCredentialAssertion,
            let data = used.rawAuthenticatorData, let signature = used.signature
        else { return nil }
        let assertion = PasskeyAssertion(
            id: Array(used.credentialID), clientDataJSON: Array(used.rawClientDataJSON),
            authenticatorData: Array(data), signature: Array(signature), userHandle: used.userID.map { Array($0) })
        let output = used.prf.map { output in
            output.first.withUnsafeBytes { SecretBytes(SecureBytes(copying: $0)) }
        }
        return .assertion(PasskeyAnswer(assertion, output: output))
    }
}

@available(iOS 18, macOS 15, *)
extension Ceremony: ASAuthorizationControllerDelegate, ASAuthorizationControllerPresentationContextProviding {
    func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor { window() }

    func authorizationController(
        controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization
    ) {
        end(Self.outcome(of: authorization.credential).map { .success($0) } ?? .failure(.failed))
    }

    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error) {
        let reason: PasskeyError =
            switch (error as? ASAuthorizationError)?.code {
            // The system reports a missing passkey like a cancellation.
            case .canceled?: .cancelled
            case .matchedExcludedCredential?: .exists
            case .notHandled?, .notInteractive?: .noAuthenticator
            default: .failed
            }
        end(.failure(reason))
    }
}
