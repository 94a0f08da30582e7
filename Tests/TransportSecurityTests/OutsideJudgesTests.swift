import Testing
import TransportSecurity

/// What OpenSSL's and curl's own programs say about what this code made.
struct OutsideJudgesTests {
    private let directory: CertificateDirectory
    private let temporary: TemporaryDirectory

    init() throws {
        temporary = try TemporaryDirectory()
        directory = CertificateDirectory(path: "\(temporary.path)/tls")
        try directory.create(hosts: [Host("localhost"), Host("127.0.0.1"), Host("::1"), Host("api.example.com")])
    }

    private func server() throws -> LoopbackServer {
        try LoopbackServer(context: TLSServerContext(identity: directory.identity()))
    }

    @Test(arguments: [["-verify_hostname", "api.example.com"], ["-verify_ip", "127.0.0.1"], ["-verify_ip", "::1"]])
    func `openssl verify accepts the certificate as its own only anchor`(_ host: [String]) throws {
        let file = directory.certificateFile
        let outcome = try Tool.run(
            "openssl",
            ["verify", "-x509_strict", "-check_ss_sig", "-no-CApath", "-no-CAstore", "-purpose", "sslserver"] + host
                + ["-CAfile", file, file])
        #expect(outcome.status == 0, "\(outcome.output)")
    }

    @Test func `openssl verify refuses another host`() throws {
        let file = directory.certificateFile
        let outcome = try Tool.run(
            "openssl", ["verify", "-verify_hostname", "evil.example.com", "-CAfile", file, file])
        #expect(outcome.status != 0)
    }

    @Test func `the extensions are those of a server and of no authority`() throws {
        let outcome = try Tool.run("openssl", ["x509", "-in", directory.certificateFile, "-noout", "-text"])
        for line in [
            "X509v3 Basic Constraints: critical", "CA:FALSE", "X509v3 Key Usage: critical", "Digital Signature",
            "TLS Web Server Authentication", "IP Address:127.0.0.1", "DNS:api.example.com",
            "Signature Algorithm: ecdsa-with-SHA256", "Version: 3",
        ] {
            #expect(outcome.output.contains(line), "\(line) is missing in \(outcome.output)")
        }
    }

    @Test func `openssl computes the same pins`() throws {
        let pins = try directory.pins()
        for (file, pin) in [(directory.keyFile, pins.active), (directory.backupKeyFile, pins.backup)] {
            let script =
                "openssl pkey -in '\(file)' -pubout -outform der | openssl dgst -sha256 -binary | openssl base64"
            let outcome = try Tool.run("sh", ["-c", script])
            #expect("sha256//" + outcome.output == "\(try #require(pin))\n")
        }
    }

    @Test func `openssl exports the same DER`() throws {
        let file = "\(temporary.path)/certificate.der"
        _ = try temporary.write(directory.exportDER(), to: "certificate.der")
        let outcome = try Tool.run("openssl", ["x509", "-inform", "der", "-in", file, "-outform", "pem"])
        let pem = try Tool.run("cat", [directory.certificateFile])
        #expect(outcome.output == pem.output)
    }

    @Test func `curl connects with the certificate as its only authority`() throws {
        let server = try server()
        for host in ["localhost", "127.0.0.1"] {
            let outcome = try curl(server, host, ["--cacert", directory.certificateFile])
            #expect(outcome.status == 0, "\(outcome.output)")
            #expect(outcome.output.contains("resumed=false"))
        }
    }

    @Test func `curl connects with the pin, and not with another`() throws {
        let server = try server()
        let pins = try directory.pins()
        let both = "\(pins.active);\(try #require(pins.backup))"
        #expect(try curl(server, "localhost", ["--insecure", "--pinnedpubkey", both]).status == 0)
        let wrong = try curl(server, "localhost", ["--insecure", "--pinnedpubkey", "\(try #require(pins.backup))"])
        // CURLE_SSL_PINNEDPUBKEYNOTMATCH
        #expect(wrong.status == 90)
    }

    @Test func `curl with TLS 1.2 is refused by default`() throws {
        let server = try server()
        let outcome = try curl(server, "localhost", ["--cacert", directory.certificateFile, "--tls-max", "1.2"])
        // CURLE_SSL_CONNECT_ERROR
        #expect(outcome.status == 35)
    }

    @Test func `openssl s_client sees X25519, one ticket, and no early data`() throws {
        let server = try server()
        let outcome = try Tool.run(
            "openssl",
            [
                "s_client", "-connect", "127.0.0.1:\(server.port)", "-CAfile", directory.certificateFile,
                "-verify_return_error", "-servername", "localhost", "-alpn", "h2,http/1.1", "-ign_eof",
            ], input: "GET / HTTP/1.1\r\n\r\n")
        #expect(outcome.output.contains("ALPN protocol: http/1.1"))
        #expect(outcome.output.contains("Server Temp Key: X25519"))
        #expect(outcome.output.contains("Verify return code: 0 (ok)"))
        #expect(outcome.output.contains("Max Early Data: 0"))
        #expect(outcome.output.occurrences(of: "Post-Handshake New Session Ticket arrived") == 1)
    }

    @Test func `openssl s_client resumes a session of its own`() throws {
        let server = try server()
        let session = "\(temporary.path)/session.pem"
        let arguments = [
            "s_client", "-connect", "127.0.0.1:\(server.port)", "-CAfile", directory.certificateFile, "-ign_eof",
        ]
        let request = "GET / HTTP/1.1\r\n\r\n"
        let first = try Tool.run("openssl", arguments + ["-sess_out", session], input: request)
        #expect(first.output.contains("resumed=false"))
        let second = try Tool.run("openssl", arguments + ["-sess_in", session], input: request)
        #expect(second.output.contains("resumed=true"), "\(second.output)")
    }

    private func curl(_ server: LoopbackServer, _ host: String, _ arguments: [String]) throws -> Tool.Outcome {
        try Tool.run(
            "curl", ["--silent", "--show-error", "--noproxy", "*"] + arguments + ["https://\(host):\(server.port)/"])
    }
}

extension String {
    /// How often `part` occurs.
    fileprivate func occurrences(of part: String) -> Int {
        ranges(of: part).count
    }
}
