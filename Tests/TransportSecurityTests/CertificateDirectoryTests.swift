import Cryptography
import Foundation
import Testing

@testable import TransportSecurity

struct CertificateDirectoryTests {
    private let temporary: TemporaryDirectory
    private let directory: CertificateDirectory

    init() throws {
        temporary = try TemporaryDirectory()
        directory = CertificateDirectory(path: "\(temporary.path)/tls")
    }

    private var files: [String] {
        [directory.certificateFile, directory.keyFile, directory.backupKeyFile]
    }

    private func contents(_ file: String) throws -> Data {
        try Data(contentsOf: URL(filePath: file))
    }

    @Test func `creating makes two private keys, a certificate and nothing else`() throws {
        let pins = try directory.create(hosts: [Host("localhost")])
        #expect(try TemporaryDirectory.mode(directory.path) == 0o700)
        #expect(try TemporaryDirectory.mode(directory.keyFile) == 0o600)
        #expect(try TemporaryDirectory.mode(directory.backupKeyFile) == 0o600)
        #expect(try TemporaryDirectory.mode(directory.certificateFile) == 0o644)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
                == ["backup-key.pem", "certificate.pem", "key.pem"])
        #expect(try directory.pins() == pins)
        #expect(pins.active != pins.backup)
        #expect(try PrivateKey(contentsOf: directory.keyFile).pin() == pins.active)
        #expect(try PrivateKey(contentsOf: directory.backupKeyFile).pin() == pins.backup)
    }

    @Test(arguments: ["certificate.pem", "key.pem", "backup-key.pem"])
    func `creating overwrites nothing`(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: false)
        _ = try temporary.write("precious".utf8, to: "tls/\(name)")
        let error = failure { () throws(CertificateError) in try directory.create(hosts: [Host("localhost")]) }
        #expect(error == .alreadyExists(path: "\(directory.path)/\(name)"))
        #expect(try contents("\(directory.path)/\(name)") == Data("precious".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [name])
    }

    @Test func `creating without hosts leaves nothing behind`() {
        let error = failure { () throws(CertificateError) in try directory.create(hosts: []) }
        #expect(error == .invalidHost(""))
        #expect(!FileManager.default.fileExists(atPath: directory.path))
    }

    @Test func `the umask does not decide who can read a key`() throws {
        let before = umask(0)
        defer { umask(before) }
        try directory.create(hosts: [Host("localhost")])
        #expect(try TemporaryDirectory.mode(directory.keyFile) == 0o600)
    }

    @Test func `rotating makes the backup key the active one`() throws {
        let before = try directory.create(hosts: [Host("localhost"), Host("127.0.0.1")])
        let after = try directory.rotate()

        #expect(after.active == before.backup)
        #expect(after.backup != before.active)
        #expect(after.backup != before.backup)
        #expect(try directory.pins() == after)
        let identity = try directory.identity()
        #expect(identity.certificate.hosts == [try Host("localhost"), try Host("127.0.0.1")])
        #expect(try identity.key.pin() == before.backup)
        #expect(try TemporaryDirectory.mode(directory.keyFile) == 0o600)
        #expect(try TemporaryDirectory.mode(directory.backupKeyFile) == 0o600)
        #expect(directory.check().allSatisfy { $0.severity == .fine })
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 3)
    }

    @Test func `a client that pins both keys stays connected through a rotation`() throws {
        let pins = try directory.create(hosts: [Host("localhost")])
        let client = try TLSClientContext(trust: .pins([pins.active, try #require(pins.backup)]))
        try TLSPair(server: TLSServerContext(identity: directory.identity()), client: client).handshake()
        try directory.rotate()
        try TLSPair(server: TLSServerContext(identity: directory.identity()), client: client).handshake()
        try directory.rotate()
        let twice = try TLSPair(server: TLSServerContext(identity: directory.identity()), client: client)
        #expect(throws: TLSError.pinMismatch) { try twice.handshake() }
    }

    @Test func `a rotation that stopped after the certificate serves, and is finished by the next`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let oldKey = try contents(directory.keyFile)
        let oldBackup = try contents(directory.backupKeyFile)
        try directory.rotate()
        try oldKey.write(to: URL(filePath: directory.keyFile))
        try oldBackup.write(to: URL(filePath: directory.backupKeyFile))

        #expect(try directory.identity().key.pin() == before.backup)
        #expect(severity(.keyMatchesCertificate) == .problem)
        let certificate = try contents(directory.certificateFile)
        let after = try directory.rotate()
        #expect(try contents(directory.certificateFile) == certificate)
        #expect(after.active == before.backup)
        #expect(after.backup != before.backup)
        #expect(directory.check().allSatisfy { $0.severity == .fine })
    }

    @Test func `a rotation that stopped before the new backup key serves, and is finished by the next`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let oldBackup = try contents(directory.backupKeyFile)
        try directory.rotate()
        try oldBackup.write(to: URL(filePath: directory.backupKeyFile))

        #expect(try directory.identity().key.pin() == before.backup)
        #expect(severity(.backupDiffers) == .problem)
        let certificate = try contents(directory.certificateFile)
        let after = try directory.rotate()
        #expect(try contents(directory.certificateFile) == certificate)
        #expect(after.active == before.backup)
        #expect(after.backup != before.backup)
        #expect(directory.check().allSatisfy { $0.severity == .fine })
    }

    @Test func `changes at the same time come one after the other`() async throws {
        try directory.create(hosts: [Host("localhost")])
        for _ in 0..<20 {
            let before = try directory.pins()
            let changes = [
                Task.detached { [directory] in try directory.renew() },
                Task.detached { [directory] in try directory.rotate() },
            ]
            for change in changes { _ = try await change.value }
            _ = try directory.identity()
            #expect(try PrivateKey(contentsOf: directory.keyFile).pin() == before.backup)
            #expect(try directory.pins().active == before.backup)
        }
    }

    @Test func `a renewed certificate has the key and the hosts of the one before, and another number`() throws {
        let before = try directory.create(hosts: [Host("localhost"), Host("127.0.0.1")])
        let old = try directory.certificate()
        let keys = try [contents(directory.keyFile), contents(directory.backupKeyFile)]
        #expect(try directory.renew() == before)
        let new = try directory.certificate()
        #expect(new.der != old.der)
        #expect(new.hosts == old.hosts)
        #expect(new.notAfter >= old.notAfter)
        #expect(try [contents(directory.keyFile), contents(directory.backupKeyFile)] == keys)
        #expect(try TemporaryDirectory.mode(directory.certificateFile) == 0o644)
        #expect(directory.check().allSatisfy { $0.severity == .fine })
    }

    @Test func `in the middle of a rotation the certificate that is served is renewed`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let (oldKey, oldBackup) = (try contents(directory.keyFile), try contents(directory.backupKeyFile))
        try directory.rotate()
        try oldKey.write(to: URL(filePath: directory.keyFile))
        try oldBackup.write(to: URL(filePath: directory.backupKeyFile))
        try directory.renew()
        #expect(try directory.identity().key.pin() == before.backup)
        #expect(try directory.rotate().active == before.backup)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `what root changes stays the files of the server's user`() throws {
        try directory.create(hosts: [Host("localhost")])
        for file in files { #expect(chown(file, 65_534, 65_533) == 0) }
        try directory.rotate()
        try directory.renew()
        for file in files {
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            #expect(attributes[.ownerAccountID] as? Int == 65_534, "\(file)")
            #expect(attributes[.groupOwnerAccountID] as? Int == 65_533, "\(file)")
        }
    }

    @Test(arguments: 0..<3)
    func `a link in the place of a file is refused before anything is changed`(_ index: Int) throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let file = files[index]
        try FileManager.default.moveItem(atPath: file, toPath: file + ".elsewhere")
        try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: file + ".elsewhere")
        let error = failure { () throws(CertificateError) in try directory.rotate() }
        #expect(error?.description.contains("it is a link") == true)
        #expect(try directory.pins() == before)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file) == file + ".elsewhere")
    }

    @Test func `a folder that takes the place of the opened one is neither read nor written`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        let other = CertificateDirectory(path: "\(temporary.path)/other")
        let others = try other.create(hosts: [Host("localhost")])
        let precious = try contents(other.certificateFile)

        let folder = try ProtectedFolder(directory.path)
        let moved = CertificateDirectory(path: directory.path + ".moved")
        try FileManager.default.moveItem(atPath: directory.path, toPath: moved.path)
        try FileManager.default.createSymbolicLink(atPath: directory.path, withDestinationPath: other.path)
        let after = try CertificateDirectory.rotate(in: folder)
        #expect(after.active == before.backup)
        #expect(try CertificateDirectory.renew(in: folder) == after)

        #expect(try moved.pins() == after)
        #expect(moved.check().allSatisfy { $0.severity == .fine })
        #expect(try other.pins() == others)
        #expect(try contents(other.certificateFile) == precious)
        #expect(try FileManager.default.contentsOfDirectory(atPath: other.path).count == 3)
    }

    @Test func `what cannot be looked at is not told to be missing`() throws {
        let unreachable = CertificateDirectory(path: temporary.path + "/" + String(repeating: "x", count: 300))
        let finding = unreachable.check().first { $0.subject == .backupKeyFile }
        #expect(finding?.severity == .problem)
        #expect(finding?.text.contains("cannot read") == true)
        #expect(failure { () throws(CertificateError) in try unreachable.backupKey() }?.code == "cannot_read")
    }

    @Test func `without a backup key there is nothing to rotate to`() throws {
        let before = try directory.create(hosts: [Host("localhost")])
        try FileManager.default.removeItem(atPath: directory.backupKeyFile)
        let error = failure { () throws(CertificateError) in try directory.rotate() }
        #expect(error?.code == "cannot_read")
        #expect(try directory.pins() == .init(active: before.active, backup: nil))
        #expect(severity(.backupKeyFile) == .warning)
    }

    @Test func `a certificate from an authority is not replaced by one of our own`() throws {
        try directory.create(hosts: [Host("localhost")])
        let authority = "\(temporary.path)/authority"
        let script = """
            set -e
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout '\(authority).key' \
              -out '\(authority).pem' -subj /CN=Authority -days 2
            openssl req -new -key '\(directory.keyFile)' -subj /CN=localhost -out '\(authority).csr'
            openssl x509 -req -in '\(authority).csr' -CA '\(authority).pem' -CAkey '\(authority).key' -CAcreateserial \
              -days 2 -out '\(directory.certificateFile)'
            cat '\(authority).pem' >> '\(directory.certificateFile)'
            """
        let outcome = try Tool.run("sh", ["-c", script])
        #expect(outcome.status == 0, "\(outcome.output)")
        let issued = try contents(directory.certificateFile)

        #expect(failure { () throws(CertificateError) in try directory.rotate() } == .issuedByAuthority)
        #expect(failure { () throws(CertificateError) in try directory.renew() } == .issuedByAuthority)
        #expect(try contents(directory.certificateFile) == issued)
        // Not one of the system's authorities.
        #expect(severity(.verification) == .problem)
        #expect(severity(.hosts) == .problem)
        // The whole chain is served all the same.
        let identity = try directory.identity()
        #expect(identity.chain.count == 2)
        let client = try TLSClientContext(trust: .pins([identity.certificate.pin]))
        let pair = try TLSPair(server: TLSServerContext(identity: identity), client: client)
        try pair.handshake()
        #expect(pair.client.peerChainCount == 2)
    }

    @Test func `a fresh directory has no findings but good ones`() throws {
        try directory.create(hosts: [Host("localhost")])
        let findings = directory.check()
        #expect(findings.allSatisfy { $0.severity == .fine })
        #expect(
            Set(findings.map(\.subject)) == [
                .certificateFile, .keyFile, .backupKeyFile, .keyMatchesCertificate, .serving, .expiry, .hosts,
                .verification, .backupDiffers,
            ])
        #expect(findings.first { $0.subject == .expiry }?.text == "the certificate expires in 396 days")
    }

    @Test func `a host that clients use and the certificate is not for is a problem, which a renewal solves`() throws {
        let pins = try directory.create(hosts: [Host("A.example.org"), Host("*.b.example.org"), Host("127.0.0.1")])
        func finding(_ hosts: String...) throws -> CertificateFinding? {
            directory.check(hosts: try hosts.map { try Host($0) }).first { $0.subject == .hosts }
        }
        for host in ["a.example.org", "x.b.example.org", "127.0.0.1", "*.b.example.org"] {
            #expect(try finding(host)?.severity == .fine, "\(host)")
        }
        for host in ["b.example.org", "y.x.b.example.org", "x.a.example.org", "127.0.0.2", "::1", "*.example.org"] {
            #expect(try finding(host)?.severity == .problem, "\(host)")
        }
        let text = try #require(try finding("a.example.org", "new.example.org")).text
        #expect(
            text == "the certificate is not for new.example.org, but for a.example.org, *.b.example.org, 127.0.0.1: "
                + "certificate renew --host a.example.org --host '*.b.example.org' --host 127.0.0.1 --host new.example.org "
                + "creates one for the same key")
        #expect(try directory.renew(hosts: [Host("a.example.org"), Host("new.example.org")]) == pins)
        #expect(try finding("a.example.org", "new.example.org")?.severity == .fine)
        #expect(try directory.renew() == pins)
        #expect(try finding("new.example.org")?.severity == .fine)
    }

    @Test func `expiry becomes a warning and then a problem`() throws {
        try directory.create(hosts: [Host("localhost")])
        let end = try directory.identity().certificate.notAfter
        let day: Int64 = 86400
        // Where certbot renews, it is fine.
        #expect(severity(.expiry, at: end - 29 * day) == .fine)
        #expect(severity(.expiry, at: end - 13 * day) == .warning)
        #expect(severity(.expiry, at: end - 1) == .warning)
        #expect(severity(.expiry, at: end) == .problem)
        #expect(severity(.verification, at: end + 1) == .problem)
        #expect(severity(.expiry, at: end - 398 * day) == .problem)
        #expect(severity(.verification, at: end - 398 * day) == .problem)
    }

    @Test func `files that others can read, that do not fit or are missing are found`() throws {
        try directory.create(hosts: [Host("localhost")])
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: directory.keyFile)
        #expect(severity(.keyFile) == .problem)
        try FileManager.default.setAttributes([.posixPermissions: 0o604], ofItemAtPath: directory.backupKeyFile)
        #expect(severity(.backupKeyFile) == .problem)
        try FileManager.default.removeItem(atPath: directory.keyFile)
        try PrivateKey.generate().write(to: "key.pem", in: ProtectedFolder(directory.path), existing: .refuse)
        #expect(severity(.keyFile) == .fine)
        #expect(severity(.keyMatchesCertificate) == .problem)
        try FileManager.default.removeItem(atPath: directory.certificateFile)
        #expect(severity(.certificateFile) == .problem)
    }

    private func severity(
        _ subject: CertificateFinding.Subject, at now: Int64? = nil
    ) -> CertificateFinding.Severity? {
        directory.check(now: now).first { $0.subject == subject }?.severity
    }
}
