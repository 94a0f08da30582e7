import Cryptography
import Foundation
import Security
import Testing

@testable import SalternClient

/// Which servers are believed: the pure part on certificates of OpenSSL's, the decision on stand-ins for the system's
/// functions.
struct ServerTrustTests {
    private static let kinds: [TestCertificate.Key] = [.p256, .p384, .rsa(2048), .rsa(3072)]

    private func trust(_ certificate: TestCertificate) throws -> SecTrust {
        SecTrust(chain: [try #require(SecCertificateCreateWithData(nil, Data(certificate.der) as CFData))])
    }

    private func pin(_ certificate: TestCertificate) -> String {
        "sha256//" + Base64.encodeToString(SHA256.hash(certificate.publicKeyInfo))
    }

    @Test(arguments: kinds)
    func `a bare key becomes the public key of its certificate, byte for byte`(_ kind: TestCertificate.Key) throws {
        let made = try TestCertificate(kind)
        let certificate = try #require(SecCertificateCreateWithData(nil, Data(made.der) as CFData))
        let key = try #require(SecCertificateCopyKey(certificate))
        let bare = [UInt8](try #require(SecKeyCopyExternalRepresentation(key, nil)) as Data)
        #expect(bare.count < made.publicKeyInfo.count)
        #expect(SubjectPublicKeyInfo.encoding(ofKey: bare) == made.publicKeyInfo)
    }

    @Test func `a key of another kind has no pin`() throws {
        #expect(SubjectPublicKeyInfo.encoding(ofKey: []) == nil)
        #expect(SubjectPublicKeyInfo.encoding(ofKey: [UInt8](repeating: 4, count: 64)) == nil)
        let edwards = try TestCertificate(.ed25519)
        let server = PinnedServer(base: "https://a", pins: [pin(edwards)], anchor: edwards.pem)
        #expect(try #require(ServerTrust(server)).refusal(of: trust(edwards)) == .pinMismatch)
    }

    @Test(arguments: kinds)
    func `one of the pins has to fit, and the anchor`(_ kind: TestCertificate.Key) throws {
        let certificate = try TestCertificate(kind)
        let other = try TestCertificate(.p256)
        func refusal(_ pins: [String], _ anchor: TestCertificate?) throws -> TransportError? {
            let server = PinnedServer(base: "https://a", pins: pins, anchor: anchor?.pem)
            return try #require(ServerTrust(server)).refusal(of: trust(certificate))
        }
        #expect(try refusal([pin(certificate)], certificate) == nil)
        #expect(try refusal([pin(other), pin(certificate)], certificate) == nil)
        #expect(try refusal([], certificate) == nil)
        #expect(try refusal([pin(other)], certificate) == .pinMismatch)
        #expect(try refusal([pin(certificate)], other) == .untrustedCertificate)
        #expect(try refusal([pin(certificate)], nil) == .untrustedCertificate)
    }

    @Test func `an anchor is one certificate or several in PEM`() throws {
        let one = try TestCertificate(.p256)
        let two = try TestCertificate(.p384)
        #expect(PEMCertificates.decode(one.pem) == [one.der])
        #expect(PEMCertificates.decode(Array("a line before\n".utf8) + one.pem + two.pem) == [one.der, two.der])
        for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA"] {
            #expect(PEMCertificates.decode(Array(text.utf8)) == nil)
        }
        let broken = PinnedServer(
            base: "https://a", pins: [],
            anchor: Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----".utf8))
        #expect(throws: TransportError.configuration(.certificate)) { try URLSessionTransport(broken) }
    }
}
