import Foundation
import Testing

@testable import TransportSecurity

@Suite struct KeyFilePrivacyTests {
    @Test(arguments: [
        // The owner, the mode, and whether a key may be in such a file.
        (0, 0o440, true), (0, 0o640, true), (0, 0o600, true), (0, 0o400, true), (0, 0o660, false), (0, 0o444, false),
        (0, 0o644, false), (0, 0o450, false), (0, 0o604, false), (10_001, 0o600, true), (10_001, 0o400, true),
        (10_001, 0o640, false), (10_001, 0o440, false), (10_001, 0o601, false),
    ])
    func `a key's file is private by PostgreSQL's rule`(owner: Int, mode: Int, isPrivate: Bool) {
        var status = stat()
        status.st_uid = uid_t(owner)
        status.st_mode = S_IFREG | mode_t(mode)
        #expect(ProtectedFile.isPrivate(status) == isPrivate)
    }

    @Test func `a key in the certificate's file is a problem when others can read it`() throws {
        let temporary = try TemporaryDirectory()
        let directory = CertificateDirectory(path: temporary.path + "/tls")
        _ = try directory.create(hosts: [try Host("localhost")])
        #expect(!directory.check().contains { $0.severity == .problem || $0.text.contains("private key in it") })
        let both =
            try String(contentsOfFile: directory.certificateFile, encoding: .utf8)
            + String(contentsOfFile: directory.keyFile, encoding: .utf8)
        try both.write(toFile: directory.certificateFile, atomically: false, encoding: .utf8)
        for (mode, severity) in [(0o644, CertificateFinding.Severity.problem), (0o600, .warning)] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.certificateFile)
            let found = directory.check().filter { $0.text.contains("has a private key in it") }
            #expect(found.map(\.severity) == [severity], "\(mode)")
            #expect(found.map(\.subject) == [.certificateFile])
        }
    }
}
