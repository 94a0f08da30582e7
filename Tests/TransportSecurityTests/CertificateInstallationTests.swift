import Cryptography
import Foundation
import Testing

@testable import TransportSecurity

/// The installation of an authority's chain and key.
@Suite struct CertificateInstallationTests {
    private let temporary: TemporaryDirectory
    private let directory: CertificateDirectory

    init() throws {
        temporary = try TemporaryDirectory()
        directory = CertificateDirectory(path: "\(temporary.path)/tls")
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
    }

    /// A certificate, in PEM, for a key.
    private func certificate(_ key: PrivateKey, now: Int64? = nil) throws -> [UInt8] {
        try SelfSignedCertificate.make(hosts: [Host("localhost")], key: key, now: now).pem
    }

    @Test func `chain and key are replaced, and nothing else of the sources is copied`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let key = try PrivateKey.generate()
        let text = Array("a remark\n".utf8) + (try certificate(key)) + (try key.pem().withUnsafeBytes { Array($0) })
        let pins = try directory.install(chain: text, key: key.pem())
        #expect(try pins.active == key.pin())
        #expect(pins.backup == before.backup)
        #expect(try directory.pins() == pins)
        #expect(try directory.identity().key.pin() == key.pin())
        #expect(try names == ["backup-key.pem", "certificate.pem", "key.pem"])
        #expect(try TemporaryDirectory.mode(directory.keyFile) == 0o600)
        #expect(try TemporaryDirectory.mode(directory.certificateFile) == 0o644)
        #expect(try !String(contentsOfFile: directory.certificateFile, encoding: .utf8).contains("PRIVATE"))
        #expect(directory.check().allSatisfy { $0.severity == .fine })
    }

    @Test func `the folder is made when there is none`() throws {
        let key = try PrivateKey.generate()
        let pins = try directory.install(chain: certificate(key), key: key.pem())
        #expect(pins.backup == nil)
        #expect(try names == ["certificate.pem", "key.pem"])
        #expect(try TemporaryDirectory.mode(directory.path) == 0o700)
    }

    @Test func `a backup key that becomes the active one is followed by a new one`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let backup = try PrivateKey(contentsOf: directory.backupKeyFile)
        let pins = try directory.install(chain: certificate(backup), key: backup.pem())
        #expect(pins.active == before.backup)
        #expect(pins.backup != before.backup)
        #expect(directory.check().allSatisfy { $0.severity == .fine })
    }

    @Test func `a key that clients do not pin is refused where pins are kept`() throws {
        let key = try PrivateKey.generate()
        // Nobody has pinned anything.
        try directory.install(chain: certificate(key), key: key.pem(), keepsPins: true)
        let other = try PrivateKey.generate()
        let files = try names.map { try Data(contentsOf: URL(filePath: "\(directory.path)/\($0)")) }
        let chain = try certificate(other)
        let error = failure { () throws(CertificateError) in
            try directory.install(chain: chain, key: other.pem(), keepsPins: true)
        }
        #expect(error == .unpinnedKey(pin: "\(try other.pin())"))
        #expect(try names.map { try Data(contentsOf: URL(filePath: "\(directory.path)/\($0)")) } == files)
        try directory.install(chain: certificate(key), key: key.pem(), keepsPins: true)
        try directory.install(chain: certificate(other), key: other.pem())
        #expect(try directory.pins().contains(other.pin()) && !directory.pins().contains(key.pin()))
    }

    @Test func `a backup key takes the place of the active one where pins are kept`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let backup = try PrivateKey(contentsOf: directory.backupKeyFile)
        #expect(
            try directory.install(chain: certificate(backup), key: backup.pem(), keepsPins: true).active
                == before.backup)
    }

    @Test func `what a server would not serve changes nothing`() throws {
        try directory.create(hosts: [Host("localhost")])
        let (key, other) = (try PrivateKey.generate(), try PrivateKey.generate())
        let good = try certificate(key)
        let day: Int64 = 86_400
        let now = systemTime()
        let attempts: [(chain: [UInt8], key: PrivateKey, code: String)] = [
            (good, other, "key_does_not_match_certificate"), (try certificate(other) + good, key, "wrong_chain_order"),
            ([], key, "no_certificate"), (try certificate(key, now: now - 400 * day), key, "not_valid_now"),
            (try certificate(key, now: now + day), key, "not_valid_now"),
        ]
        let files = try names.map { try Data(contentsOf: URL(filePath: "\(directory.path)/\($0)")) }
        for attempt in attempts {
            let error = failure { () throws(CertificateError) in
                try directory.install(chain: attempt.chain, key: attempt.key.pem())
            }
            #expect(error?.code == attempt.code)
            #expect(try names.map { try Data(contentsOf: URL(filePath: "\(directory.path)/\($0)")) } == files)
        }
    }

    /// The steps of an installation, and whether its certificate is there after them.
    @Test(arguments: [false, true])
    func `an installation that was interrupted serves, and is finished by the next change`(hasCertificate: Bool) throws
    {
        let before = try directory.create(hosts: [Host("localhost")])
        let key = try PrivateKey.generate()
        let folder = try ProtectedFolder(directory.path)
        try key.write(to: CertificateDirectory.Name.nextKey, in: folder, existing: .refuse)
        if hasCertificate {
            try folder.write(
                certificate(key), to: CertificateDirectory.Name.certificate, access: .everyone, existing: .replace)
        }
        let active = hasCertificate ? try key.pin() : before.active
        #expect(try directory.identity().key.pin() == active)
        #expect(
            directory.check().contains { $0.subject == .keyMatchesCertificate && $0.text.contains("interrupted") }
                == hasCertificate)
        #expect(try directory.renew().active == active)
        #expect(try names == ["backup-key.pem", "certificate.pem", "key.pem"])
        #expect(try PrivateKey(contentsOf: directory.keyFile).pin() == active)
        #expect(directory.check().allSatisfy { $0.severity == .fine })
    }

    @Test func `certificates behind each other that were not issued so are a warning`() throws {
        try directory.create(hosts: [Host("localhost")])
        let stranger = try SelfSignedCertificate.make(hosts: [Host("stranger.example.org")], key: .generate())
        let chain = try directory.certificate().pem + stranger.pem
        try Data(chain).write(to: URL(filePath: directory.certificateFile))
        #expect(directory.check().first { $0.subject == .chainOrder }?.severity == .warning)
        #expect(!directory.check().contains { $0.severity == .problem })
    }
}
