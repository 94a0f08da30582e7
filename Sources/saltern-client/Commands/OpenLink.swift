import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct OpenLink: Command {
    static let words = ["open"]
    static let summary = "open a link that somebody has shared, at the price of a view"
    static let help = """
        usage: saltern-client open [LINK] [--output FILE]

          --link-file FILE      the link is the first line of this file; - is standard input
          --output FILE         a new file that only you can read
          --pin sha256//…       a pin of the server's key, when you have no account there; may be repeated
          --certificate FILE    a certificate in PEM that is the only anchor, when you have no account there
          --json                one object with text, or data (base64) with filename and mediaType

        Without LINK the terminal is asked. A link has the key to what it opens: as an argument, others on this machine can
        see it while this runs.
        """

    private struct Record: Encodable {
        var text: String?
        var filename: String?
        var mediaType: String?
        var data: String?
    }

    private let link: String?
    private let secret: SecretOption
    private let output: String?
    private let pins: [String]
    private let certificate: String?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        secret = try SecretOption("--link-file", &arguments)
        output = try arguments.option("--output")
        pins = try arguments.options("--pin")
        certificate = try arguments.option("--certificate")
        link = try arguments.optionalWord()
    }

    func run(_ console: Console) async throws {
        let text = try link ?? secret.text("Link")
        guard let url = URL(string: text), url.scheme == "https", let host = url.host(), url.fragment() != nil else {
            throw UsageError(message: "a link looks like https://host/s/ID#KEY")
        }
        let server = "https://\(host)" + (url.port.map { ":\($0)" } ?? "")
        let transport = try transport(server, console)
        // First: what is opened once may not be opened again.
        let target = try output.map { try PrivateFile.begin($0) }
        let payload: SecureBytes
        do {
            payload = try await ShareLink.open(url, over: transport)
        } catch {
            target?.remove()
            throw error
        }
        let file = SharedFile(payload: payload)
        let content = file.map { SecureBytes(copying: $0.data.bytes) } ?? payload
        if let target {
            do throws(CommandFailure) {
                try target.finish(with: content.withUnsafeBytes { Data($0) })
            } catch {
                throw Self.kept(content, error, console)
            }
            if asJSON { try console.printJSON(["file": output]) }
        } else if asJSON {
            let text = file == nil ? payload.withUnsafeBytes { String(validating: $0, as: UTF8.self) } : nil
            try console.printJSON(
                Record(
                    text: text, filename: file?.filename, mediaType: file?.mediaType,
                    data: text == nil ? Base64.encodeToString(content) : nil))
        } else {
            console.writeContent(content.withUnsafeBytes { [UInt8]($0) })
        }
    }

    /// What is there once only, and has no room where it should be, is kept in memory until somebody has taken it.
    private static func kept(_ content: SecureBytes, _ failure: CommandFailure, _ console: Console) -> CommandFailure {
        guard let folder = try? PrivateFolder(console.environment, of: URL(filePath: "/")) else { return failure }
        let file = try? content.withUnsafeBytes { bytes throws(CommandFailure) in try folder.write("content", bytes) }
        guard let file else {
            folder.wipe()
            return failure
        }
        return CommandFailure(
            failure.messages.map { "\($0); what the link has opened is in \(file): move it from there" },
            status: failure.status, code: failure.code)
    }

    /// The way to the link's server: as an account here knows it, or as it was said.
    private func transport(_ server: String, _ console: Console) throws -> CurlTransport {
        if pins.isEmpty, certificate == nil, let profiles = try? ProfileStore(console.environment) {
            for name in profiles.names() {
                if let profile = try profiles.profile(name), profile.server == server { return try profile.transport() }
            }
        }
        let anchor = try certificate.map { path in
            guard let data = FileManager.default.contents(atPath: path) else {
                throw CommandFailure("cannot read \(path)", status: ExitStatus.notFound, code: "file_not_found")
            }
            return [UInt8](data)
        }
        return try CurlTransport(CurlTransport.Server(base: server, pins: pins, anchor: anchor))
    }
}
