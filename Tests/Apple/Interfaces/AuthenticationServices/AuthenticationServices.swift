public import CryptoKit
public import Foundation

// The parts of https://developer.apple.com/documentation/authenticationservices that the kit uses. They show nothing.

public class ASPresentationAnchor: NSObject {}

public protocol ASAuthorizationCredential {}
open class ASAuthorizationRequest: NSObject {}

public class ASAuthorization: NSObject {
    public let credential: any ASAuthorizationCredential
    init(_ credential: any ASAuthorizationCredential) { self.credential = credential }
}

public struct ASAuthorizationError: Error {
    public enum Code: Sendable {
        case unknown, canceled, invalidResponse, notHandled, failed, notInteractive, matchedExcludedCredential
    }
    public let code: Code
}

@MainActor public protocol ASAuthorizationControllerDelegate: AnyObject {
    func authorizationController(
        controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization)
    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error)
}

@MainActor public protocol ASAuthorizationControllerPresentationContextProviding: AnyObject {
    func presentationAnchor(for controller: ASAuthorizationController) -> ASPresentationAnchor
}

@MainActor public class ASAuthorizationController: NSObject {
    public weak var delegate: (any ASAuthorizationControllerDelegate)?
    public weak var presentationContextProvider: (any ASAuthorizationControllerPresentationContextProviding)?
    public init(authorizationRequests: [ASAuthorizationRequest]) {}
    public func performRequests() {
        delegate?.authorizationController(
            controller: self, didCompleteWithError: ASAuthorizationError(code: .notHandled))
    }
}

public struct ASAuthorizationPublicKeyCredentialUserVerificationPreference: Sendable {
    public static let required = Self()
    public static let preferred = Self()
}

public class ASAuthorizationPlatformPublicKeyCredentialDescriptor: NSObject {
    public init(credentialID: Data) {}
}

public struct ASAuthorizationPublicKeyCredentialPRFRegistrationInput: Sendable {
    public static let checkForSupport = Self()
}

public struct ASAuthorizationPublicKeyCredentialPRFAssertionInput: Sendable {
    public struct InputValues: Sendable {
        public static func saltInput1(_ saltInput1: Data, saltInput2: Data? = nil) -> InputValues { InputValues() }
    }
    public static func inputValues(_ inputValues: InputValues) -> Self { Self() }
}

public struct ASAuthorizationPublicKeyCredentialPRFAssertionOutput {
    public let first: SymmetricKey
}

public class ASAuthorizationPlatformPublicKeyCredentialRegistrationRequest: ASAuthorizationRequest {
    public var excludedCredentials: [ASAuthorizationPlatformPublicKeyCredentialDescriptor]?
    public var userVerificationPreference = ASAuthorizationPublicKeyCredentialUserVerificationPreference.preferred
    public var prf: ASAuthorizationPublicKeyCredentialPRFRegistrationInput?
}

public class ASAuthorizationPlatformPublicKeyCredentialAssertionRequest: ASAuthorizationRequest {
    public var allowedCredentials: [ASAuthorizationPlatformPublicKeyCredentialDescriptor] = []
    public var userVerificationPreference = ASAuthorizationPublicKeyCredentialUserVerificationPreference.preferred
    public var prf: ASAuthorizationPublicKeyCredentialPRFAssertionInput?
}

public class ASAuthorizationPlatformPublicKeyCredentialProvider: NSObject {
    public init(relyingPartyIdentifier: String) {}
    public func createCredentialRegistrationRequest(
        challenge: Data, name: String, userID: Data
    ) -> ASAuthorizationPlatformPublicKeyCredentialRegistrationRequest { .init() }
    public func createCredentialAssertionRequest(
        challenge: Data
    ) -> ASAuthorizationPlatformPublicKeyCredentialAssertionRequest { .init() }
}

public class ASAuthorizationPlatformPublicKeyCredentialRegistration: NSObject, ASAuthorizationCredential {
    public let credentialID = Data()
    public let rawClientDataJSON = Data()
    public let rawAttestationObject: Data? = nil
}

public class ASAuthorizationPlatformPublicKeyCredentialAssertion: NSObject, ASAuthorizationCredential {
    public let credentialID = Data()
    public let rawClientDataJSON = Data()
    public let rawAuthenticatorData: Data? = nil
    public let signature: Data? = nil
    public let userID: Data? = nil
    public let prf: ASAuthorizationPublicKeyCredentialPRFAssertionOutput? = nil
}
