import CommandLineKit
import HTTPCore
import TransportSecurity

/// Where certificate and keys are: `--directory DIR`, else `SALTERN_TLS_DIRECTORY`, else `tls`.
struct TLSDirectoryOption {
    private let given: String?

    static let help = "  --directory DIR  where certificate and keys are (default: SALTERN_TLS_DIRECTORY, or tls)"

    init(_ arguments: inout Arguments) throws(UsageError) { given = try arguments.option("--directory") }

    func directory(_ console: Console) throws(CommandFailure) -> CertificateDirectory {
        if let given { return CertificateDirectory(path: given) }
        var settings = Settings(console.environment)
        let directory = settings.certificateDirectory()
        try settings.finish()
        return directory
    }
}

/// Runs `body` and turns what TransportSecurity throws into a message for the operator.
private func reporting<Result>(_ body: () throws(CertificateError) -> Result) throws(CommandFailure) -> Result {
    do throws(CertificateError) {
        return try body()
    } catch {
        throw CommandFailure("\(error)")
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
    static let summary = "make a key, a self-signed certificate and a backup key, and print their pins"
    static let help = """
          --host NAME      a DNS name or address that clients use; may be repeated, needed once
        \(TLSDirectoryOption.help)

        Makes certificate.pem (ECDSA P-256, 397 days), key.pem and backup-key.pem. Overwrites nothing.
        Clients pin both keys: the backup is what `certificate rotate` makes active.
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
            var parsed: [Host] = []
            for host in hosts { parsed.append(try Host(host)) }
            return try directory.create(hosts: parsed)
        }
        console.printPins(pins)
    }
}

struct ShowPins: Command {
    static let words = ["certificate", "pins"]
    static let summary = "print the pins of the active and of the backup key, as curl --pinnedpubkey takes them"
    static let help = """
        \(TLSDirectoryOption.help)
          --json           one object, for scripts
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
    static let summary = "make the backup key active with a new certificate, and make a new backup key"
    static let help = """
        \(TLSDirectoryOption.help)

        Clients that pin both keys stay connected. Send SIGHUP to the server afterwards; publish the new backup pin.
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
    static let summary = "make a new certificate for the same key, so that no pin changes"
    static let help = """
        \(TLSDirectoryOption.help)

        For a self-signed certificate that is about to expire. Send SIGHUP to the server afterwards. Clients that ship the
        certificate as their anchor need the new one; those that pin the key need nothing.
        """

    let option: TLSDirectoryOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try TLSDirectoryOption(&arguments) }

    func run(_ console: Console) async throws {
        let directory = try option.directory(console)
        console.printPins(try reporting { () throws(CertificateError) in try directory.renew() })
    }
}

struct ExportCertificate: Command {
    static let words = ["certificate", "export"]
    static let summary = "write the certificate in DER to standard output, for apps that ship it"
    static let help = """
          --der            the format; the only one
        \(TLSDirectoryOption.help)
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

struct CheckCertificate: Command {
    static let words = ["certificate", "check"]
    static let summary = "look at everything about certificate and keys that has to be right"
    static let help = """
        \(TLSDirectoryOption.help)
          --json           one object, for scripts

        Prints a line for each point; exit status 1 when one is a problem.
        """

    let option: TLSDirectoryOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        option = try TLSDirectoryOption(&arguments)
    }

    func run(_ console: Console) async throws {
        try console.report(option.directory(console).check().map(Finding.init), asJSON: asJSON)
    }
}
