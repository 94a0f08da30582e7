import CommandLineKit
import HTTPCore
import TransportSecurity

/// The folder of certificate and keys: `--directory DIR`, else `SALTERN_TLS_DIRECTORY`, else `tls`.
struct TLSDirectoryOption {
    private let given: String?

    static let help = "  --directory DIR  certificate and keys (\(Setting.tlsDirectory), or tls)"

    init(_ arguments: inout Arguments) throws(UsageError) { given = try arguments.option("--directory") }

    func directory(_ console: Console) throws(CommandFailure) -> CertificateDirectory {
        if let given { return CertificateDirectory(path: given) }
        var settings = Settings(console.environment)
        let directory = settings.certificateDirectory()
        try settings.finish()
        return directory
    }

    /// Returns the oldest accepted TLS version. Another step reports an invalid setting.
    func minimumVersion(_ console: Console) -> TLSVersion {
        var settings = Settings(console.environment)
        return settings.minimumTLSVersion()
    }
}

/// Runs `body` and converts errors of TransportSecurity into messages for the operator.
private func reporting<Result>(_ body: () throws(CertificateError) -> Result) throws(CommandFailure) -> Result {
    do throws(CertificateError) {
        return try body()
    } catch {
        throw CommandFailure("\(error)")
    }
}

extension Host {
    /// Reads the values of `--host`.
    fileprivate static func parse(_ texts: [String]) throws(CertificateError) -> [Host] {
        var hosts: [Host] = []
        for text in texts { hosts.append(try Host(text)) }
        return hosts
    }
}

extension Console {
    /// Prints pins in curl's form.
    fileprivate func printPins(_ pins: CertificateDirectory.Pins) {
        print("active  \(pins.active)")
        if let backup = pins.backup { print("backup  \(backup)") }
    }
}

struct CreateCertificate: Command {
    static let words = ["certificate", "create"]
    static let summary = "create a key, a certificate and a backup key"
    static let usage = ["--host NAME [OPTIONS]"]
    static let example = "saltern certificate create --host api.example.org"
    static let help = """
          --host NAME      a DNS name or address that clients use; required, can be
                           repeated
        \(TLSDirectoryOption.help)

        Creates certificate.pem (self-signed, ECDSA P-256, 397 days), key.pem and
        backup-key.pem, and prints the pins of both keys. Overwrites nothing. Clients
        pin both keys: `certificate rotate` activates the backup key.
        """

    let hosts: [String]
    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        hosts = try arguments.options("--host")
        option = try TLSDirectoryOption(&arguments)
        if hosts.isEmpty { throw UsageError(message: "--host NAME is needed") }
    }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        let pins = try reporting { () throws(CertificateError) in
            try directory.create(hosts: Host.parse(hosts))
        }
        console.printPins(pins)
    }
}

struct ShowPins: Command {
    static let words = ["certificate", "pins"]
    static let summary = "print the pins of the active and the backup key"
    static let example = "saltern certificate pins --json"
    static let help = """
        \(TLSDirectoryOption.help)
          --json           one object, for scripts

        The pins have the form of curl's option --pinnedpubkey.
        """

    let option: TLSDirectoryOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        option = try TLSDirectoryOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        let pins = try reporting { () throws(CertificateError) in try directory.pins() }
        guard asJSON else { return console.printPins(pins) }
        console.printJSON { writer in
            writer.member("active", "\(pins.active)")
            if let backup = pins.backup { writer.member("backup", "\(backup)") }
        }
    }
}

struct RotateCertificate: Command {
    static let words = ["certificate", "rotate"]
    static let summary = "activate the backup key and create a new backup key"
    static let example = "saltern certificate rotate"
    static let help = """
        \(TLSDirectoryOption.help)

        Creates a new certificate for the backup key. Clients that pin both keys stay
        connected. Send SIGHUP to the server afterwards, and publish the new backup
        pin.
        """

    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try TLSDirectoryOption(&arguments) }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        console.printPins(try reporting { () throws(CertificateError) in try directory.rotate() })
    }
}

struct RenewCertificate: Command {
    static let words = ["certificate", "renew"]
    static let summary = "create a new certificate for the same key"
    static let example = "saltern certificate renew"
    static let help = """
          --host NAME      a DNS name or address that clients use; can be repeated
                           (default: those of the certificate)
        \(TLSDirectoryOption.help)

        For a self-signed certificate that expires soon or lacks a name. No pin changes.
        Send SIGHUP to the server afterwards. Clients that ship the certificate as their
        trust anchor need the new one. Clients that pin the key need nothing.
        """

    let hosts: [String]
    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        hosts = try arguments.options("--host")
        option = try TLSDirectoryOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        console.printPins(
            try reporting { () throws(CertificateError) in try directory.renew(hosts: Host.parse(hosts)) })
    }
}

struct ExportCertificate: Command {
    static let words = ["certificate", "export"]
    static let summary = "write the certificate in DER to standard output"
    static let usage = ["--der [OPTIONS]"]
    static let example = "saltern certificate export --der >server.der"
    static let help = """
          --der            the format; the only one
        \(TLSDirectoryOption.help)

        For apps that ship the certificate.
        """

    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        let isDER = arguments.flag("--der")
        option = try TLSDirectoryOption(&arguments)
        guard isDER else { throw UsageError(message: "--der is needed") }
    }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        console.writeContent(try reporting { () throws(CertificateError) in try directory.exportDER() })
    }
}

struct InstallCertificate: Command {
    static let words = ["certificate", "install"]
    static let summary = "install an authority's certificate and key"
    static let usage = ["--chain FILE --key FILE [OPTIONS]"]
    static let example = "saltern certificate install --chain fullchain.pem --key privkey.pem"
    static let help = """
          --chain FILE     certificate chain in PEM, the server's certificate first
                           (certbot: fullchain.pem)
          --key FILE       key in PEM without a passphrase, readable only by its owner
                           and group (certbot: privkey.pem)
          --keep-pins      rejects a key that is neither the served nor the backup key
        \(TLSDirectoryOption.help)

        Changes nothing unless a server can use the pair. Writes certificate.pem (mode
        0644) and key.pem (0600) atomically, with the owner of the earlier files or of
        the directory. Installing the backup key creates a new backup key. Send SIGHUP
        to the server afterwards (saltern-admin does).
        """

    let chain: String
    let key: String
    private let keepsPins: Bool
    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        keepsPins = arguments.flag("--keep-pins")
        let (chain, key) = (try arguments.option("--chain"), try arguments.option("--key"))
        option = try TLSDirectoryOption(&arguments)
        guard let chain, let key else { throw UsageError(message: "--chain FILE and --key FILE are needed") }
        self.chain = chain
        self.key = key
    }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        let version = option.minimumVersion(console)
        let before = try? directory.pins()
        let pins = try reporting { () throws(CertificateError) in
            try directory.install(
                chain: ProtectedFile.read(chain, access: .everyone),
                key: ProtectedFile.read(key, access: .ownerAndGroup), minimumVersion: version, keepsPins: keepsPins)
        }
        console.printPins(pins)
        if let before, !before.contains(pins.active) {
            let known = [before.active, before.backup].compactMap(\.self).map(\.description).joined(separator: " or ")
            console.printError(
                "warning: this key is neither the served key nor the backup key: clients that pin \(known) cannot "
                    + "connect until they have the pin \(pins.active); install a certificate for one of those keys to "
                    + "restore their access")
        }
        // Findings that keep clients from connecting, even though a server starts.
        for finding in directory.check(minimumVersion: version) where finding.severity != .fine {
            console.printError("\(finding.severity.rawValue): \(finding.text)")
        }
    }
}

struct CheckCertificate: Command {
    static let words = ["certificate", "check"]
    static let summary = "check certificate and keys"
    static let example = "saltern certificate check --days 30"
    static let help = """
          --host NAME      a name or address that the certificate must cover; can be
                           repeated
          --days N         days before the end at which a certificate expires soon,
                           1 to 3650 (\(CertificateDirectory.warningDays))
        \(TLSDirectoryOption.help)
          --json           one object, for scripts

        Prints a line for each check. Exit status 0: no problem. 1: the certificate
        expires within the given days. 2: there is a problem, for example the server
        would not start, or clients reject the certificate. Other warnings do not
        change the status.
        """

    static let expiresSoon: Int32 = 1
    /// The operator has to fix a problem.
    static let hasProblems: Int32 = 2

    let option: TLSDirectoryOption
    private let hosts: [String]
    private let days: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        option = try TLSDirectoryOption(&arguments)
        hosts = try arguments.options("--host")
        days = try arguments.integer("--days", in: 1...3_650) ?? CertificateDirectory.warningDays
    }

    func run(_ console: Console) async throws {
        let findings: [CertificateFinding]
        do throws(CommandFailure) {
            let wanted = try reporting { () throws(CertificateError) in try Host.parse(hosts) }
            findings = try option.directory(console).check(
                hosts: wanted, warningDays: days, minimumVersion: option.minimumVersion(console))
            try console.report(findings.map(Finding.init), asJSON: asJSON)
        } catch {
            throw CommandFailure(error.messages, status: Self.hasProblems, code: "certificate_bad")
        }
        if let expiry = findings.first(where: { $0.subject == .expiry && $0.severity == .warning }) {
            throw CommandFailure(expiry.text, status: Self.expiresSoon, code: "certificate_expires")
        }
    }
}
