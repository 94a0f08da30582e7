import Cryptography
import Foundation
import Testing
import TransportSecurity

struct PrivateKeyTests {
    @Test func `a key is the same after writing and reading`() throws {
        let key = try PrivateKey.generate()
        let read = try PrivateKey(pem: key.pem())
        #expect(try read.pin() == key.pin())
        #expect(
            try key.pem().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.hasPrefix("-----BEGIN PRIVATE KEY"))
    }

    @Test func `no two keys are the same`() throws {
        #expect(try PrivateKey.generate().pin() != PrivateKey.generate().pin())
    }

    @Test func `OpenSSL finds a key on P-256`() throws {
        let directory = try TemporaryDirectory()
        let pem = try PrivateKey.generate().pem().withUnsafeBytes { [UInt8]($0) }
        let file = try directory.write(pem, to: "key.pem")
        let outcome = try Tool.run("openssl", ["pkey", "-in", file, "-noout", "-text", "-check"])
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("ASN1 OID: prime256v1"))
        #expect(outcome.output.contains("Key is valid"))
    }

    @Test(arguments: [
        ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        ["genrsa", "-traditional", "2048"], ["genpkey", "-algorithm", "ED25519"],
        ["ecparam", "-name", "secp384r1", "-genkey", "-noout"],
    ])
    func `keys of other types and forms serve`(_ arguments: [String]) throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/key.pem"
        #expect(try Tool.run("openssl", arguments.prefix(1) + ["-out", file] + arguments.dropFirst()).status == 0)
        let certificateFile = "\(directory.path)/certificate.pem"
        let outcome = try Tool.run(
            "openssl",
            ["req", "-x509", "-key", file, "-out", certificateFile, "-subj", "/CN=localhost", "-days", "2"])
        #expect(outcome.status == 0)
        let server = try TLSServerContext(certificateFile: certificateFile, keyFile: file)
        let pin = try PrivateKey(contentsOf: file).pin()
        let pair = try TLSPair(server: server, client: TLSClientContext(trust: .pins([pin])))
        try pair.handshake()
    }

    @Test func `a key under a passphrase is refused without asking for it`() throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/key.pem"
        let arguments = ["genpkey", "-algorithm", "ED25519", "-aes256", "-pass", "pass:secret", "-out", file]
        #expect(try Tool.run("openssl", arguments).status == 0)
        let error = failure { () throws(CertificateError) in try PrivateKey(contentsOf: file) }
        #expect(error?.code == "invalid_key")
    }

    @Test(arguments: [0o644, 0o604, 0o620, 0o602, 0o610, 0o601, 0o660, 0o666])
    func `a key file that others can read or write is refused`(_ mode: Int) throws {
        let directory = try TemporaryDirectory()
        let pem = try PrivateKey.generate().pem().withUnsafeBytes { [UInt8]($0) }
        let file = try directory.write(pem, to: "key.pem", mode: mode)
        let error = failure { () throws(CertificateError) in try PrivateKey(contentsOf: file) }
        #expect(error == .keyFileNotPrivate(path: file, mode: UInt32(mode)))
        #expect(error?.description.contains("mode 0\(String(mode, radix: 8))") == true)
    }

    @Test(arguments: [0o600, 0o400])
    func `a key file that only its owner can read is read`(_ mode: Int) throws {
        let directory = try TemporaryDirectory()
        let key = try PrivateKey.generate()
        let file = try directory.write(key.pem().withUnsafeBytes { [UInt8]($0) }, to: "key.pem", mode: mode)
        #expect(try PrivateKey(contentsOf: file).pin() == key.pin())
    }

    @Test(arguments: [
        "", "garbage", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n",
    ])
    func `anything else is refused with OpenSSL's reasons`(_ text: String) throws {
        let error = failure { () throws(CertificateError) in try PrivateKey(pem: text.utf8) }
        guard case .invalidKey(let reason) = error else {
            Issue.record("the text was not refused as a key, but with \(String(describing: error))")
            return
        }
        #expect(!reason.stack.isEmpty)
    }

    @Test func `a missing file, a directory, a named pipe and a huge file are refused`() throws {
        let directory = try TemporaryDirectory()
        let missing = "\(directory.path)/missing.pem"
        #expect(
            failure { () throws(CertificateError) in try PrivateKey(contentsOf: missing) }
                == .cannotRead(path: missing, reason: "No such file or directory"))
        #expect(
            failure { () throws(CertificateError) in try PrivateKey(contentsOf: directory.path) }
                == .cannotRead(path: directory.path, reason: "not a file"))
        let pipe = "\(directory.path)/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(
            failure { () throws(CertificateError) in try PrivateKey(contentsOf: pipe) }
                == .cannotRead(path: pipe, reason: "not a file"))
        let huge = try directory.write([UInt8](repeating: 0x41, count: 2 << 20), to: "huge.pem")
        #expect(
            failure { () throws(CertificateError) in try PrivateKey(contentsOf: huge) } == .fileTooLarge(path: huge))
    }

    @Test func `a key is not printed`() throws {
        let key = try PrivateKey.generate()
        var text = "\(key) \(String(reflecting: key))"
        dump(key, to: &text)
        #expect(!text.contains("0x"))
        #expect(Mirror(reflecting: key).children.isEmpty)
    }
}

/// The error that `body` throws; `nil` when it does not.
func failure<Value, Failure: Error>(_ body: () throws(Failure) -> Value) -> Failure? {
    do throws(Failure) {
        _ = try body()
        return nil
    } catch {
        return error
    }
}
