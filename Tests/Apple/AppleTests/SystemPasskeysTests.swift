import AuthenticationServices
import Foundation
import SalternClient
import Testing

/// The stand-in for AuthenticationServices shows no sheet: each request ends unhandled.
@Suite struct SystemPasskeysTests {
    private func decoded<Value: Decodable>(_ text: String) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(text.utf8))
    }

    @Test func `requests that the system does not handle have no authenticator`() async throws {
        let passkeys = SystemPasskeys { ASPresentationAnchor() }
        let request: PasskeyRequestOptions = try decoded(
            #"{"rpId":"example.org","challenge":"AAAA","allowCredentials":[{"id":"AAAA"}],"userVerification":"required"}"#
        )
        await #expect(throws: PasskeyError.noAuthenticator) { _ = try await passkeys.get(request, prf: [1]) }
        let creation: PasskeyCreationOptions = try decoded(
            #"{"rp":{"id":"example.org","name":"E"},"user":{"id":"AAAA","name":"ada"},"challenge":"AAAA","#
                + #""pubKeyCredParams":[{"alg":-7}],"excludeCredentials":[],"#
                + #""authenticatorSelection":{"residentKey":"required","userVerification":"required"}}"#)
        await #expect(throws: PasskeyError.noAuthenticator) { _ = try await passkeys.create(creation) }
    }
}
