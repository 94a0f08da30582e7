import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct OpenLink: Command {
    static let words = ["open"]
    static let summary = "open a share link"
    static let usage = ["[LINK] [OPTIONS]"]
    static let example = "saltern-client open --link-file link.txt"
    static let help = """
          --link-file FILE      file with the link as first line (-: stdin)
          --output FILE         a new file that only you can read
          --pin sha256//…       a pin of the server's key, if you have no account there;
                                can be repeated
          --certificate FILE    a certificate in PEM as the only trust anchor, if you
                                have no account there
          --json                one object with text, or data (base64) with filename and
                                mediaType; and viewsLeft where views are limited

        Without LINK the command asks for it. A link with a limited number of views asks
        before it uses one. After a wrong key, the right link opens the fetched content
        without another view. A link contains the decryption key: as an argument, other
        users of this machine can see it.
        """

    private struct Record: Encodable {
        var text: String?
        var filename: String?
        var mediaType: String?
        var data: String?
        var file: String?
        /// The number of remaining views; nil when it is not limited.
        var viewsLeft: Int?
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
        let address = try address()
        let kept = try KeptShares(console.environment)
        let transport = try transport(address.server, console)
        // The file is created first, because a share may open only once.
        let target = try output.map { try PrivateFile.begin($0) }
        let (payload, viewsLeft): (SecureBytes, Int?)
        do {
            (payload, viewsLeft) = try await open(address, over: transport, kept, console)
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
                throw Console.keptInMemory(content, "the shared content", error, console.environment)
            }
            if asJSON { try console.printJSON(Record(file: output, viewsLeft: viewsLeft)) }
        } else if asJSON {
            let text = file == nil ? payload.withUnsafeBytes { String(validating: $0, as: UTF8.self) } : nil
            try console.printJSON(
                Record(
                    text: text, filename: file?.filename, mediaType: file?.mediaType,
                    data: text == nil ? Base64.encodeToString(content) : nil, viewsLeft: viewsLeft))
        } else {
            console.writeContent(content.withUnsafeBytes { [UInt8]($0) })
        }
        guard !console.hasLostOutput || output != nil else { throw lostOutput(address, kept) }
        kept.remove(address)
    }

    private func address() throws -> ShareAddress {
        let text = try link ?? secret.text("Link")
        do throws(ShareAddress.Malformation) {
            return try ShareAddress(text)
        } catch .notALink {
            throw UsageError(message: "a link has the form https://host/s/ID#KEY; no view was used")
        } catch .noKey {
            throw UsageError(
                message:
                    "the link's end is missing, the # and the key after it: copy the whole link; no view was used")
        } catch .brokenKey {
            throw UsageError(
                message: "the key at the link's end contains white space: copy the whole link; no view was used")
        }
    }

    /// Opens the share. If its views are limited, it is stored on the disk, sealed, before a key is tried.
    private func open(
        _ address: ShareAddress, over transport: CurlTransport, _ kept: KeptShares, _ console: Console
    ) async throws -> (SecureBytes, viewsLeft: Int?) {
        if let share = kept.share(address) { return try unlock(share, address, kept.file(address)) }
        guard let views = try await SharedLink.viewsLeft(address, over: transport) else {
            return try unlock(try await SharedLink.fetch(address, over: transport), address, nil)
        }
        // Scripts read it in the object, as `viewsLeft`.
        if !asJSON {
            console.notice(
                views == 1
                    ? "this link has one view left, and this uses it"
                    : "this link has \(views) views left, and this uses one",
                code: "view_used")
        }
        let place = try kept.begin(address)
        let share: FetchedShare
        do {
            share = try await SharedLink.fetch(address, over: transport)
        } catch {
            place.remove()
            throw error
        }
        do throws(CommandFailure) { try place.keep(share) } catch {
            // The disk is full. The key may still open the share.
            return try unlock(share, address, nil)
        }
        return try unlock(share, address, place.path)
    }

    /// Opens a fetched share.
    /// - Parameter file: The file with the share; nil when it is not stored.
    private func unlock(_ share: FetchedShare, _ address: ShareAddress, _ file: String?) throws -> (
        SecureBytes, viewsLeft: Int?
    ) {
        do throws(VaultError) {
            return (try share.open(address), share.viewsLeft)
        } catch {
            guard case .wrongShareKey = error else { throw error }
            let kept = file.map {
                ": the encrypted share is kept in \($0); open the right link, which uses no other view"
            }
            throw CommandFailure(
                "the key at the link's end does not open it\(kept ?? "")", status: ExitStatus.unreadable,
                code: "unreadable")
        }
    }

    private func lostOutput(_ address: ShareAddress, _ kept: KeptShares) -> CommandFailure {
        let hint = kept.share(address) == nil ? "" : "; open the link again, which uses no other view"
        return CommandFailure(
            "the output cannot be written\(hint)", status: ExitStatus.store, code: "output_unusable")
    }

    /// Creates the transport to the link's server, from an account of this device or from the options.
    private func transport(_ server: String, _ console: Console) throws -> CurlTransport {
        if pins.isEmpty, certificate == nil, let profiles = try? ProfileStore(console.environment) {
            for name in profiles.names() {
                if let profile = try profiles.profile(name), PinnedServer.canonical(profile.server) == server {
                    return try profile.transport()
                }
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

/// Fetched shares that have used a view and that no key has opened yet, still sealed.
///
/// Each is a file that only its owner can read, in `$XDG_DATA_HOME/saltern-client/shares`.
struct KeptShares {
    private let folder: URL

    init(_ environment: [String: String]) throws(CommandFailure) {
        folder = try ProfileStore.data(environment).appending(path: "shares", directoryHint: .isDirectory)
    }

    /// A file on the disk for a share that is about to be fetched.
    struct Place {
        fileprivate let begun: PrivateFile.Begun
        fileprivate let temporary: String
        let path: String

        /// Stores the fetched share.
        func keep(_ share: FetchedShare) throws(CommandFailure) {
            guard let data = try? JSONEncoder().encode(share) else { return remove() }
            try begun.finish(with: data)
            guard rename(temporary, path) == 0 else { return remove() }
            // The share cannot be fetched again.
            guard FileFolder.sync(of: path) else { throw PrivateFile.unusable(path) }
        }

        func remove() {
            unlink(temporary)
            unlink(path)
        }
    }

    /// Returns the share that was fetched earlier for the link; nil when there is none.
    func share(_ address: ShareAddress) -> FetchedShare? {
        FileManager.default.contents(atPath: file(address))
            .flatMap { try? JSONDecoder().decode(FetchedShare.self, from: $0) }
    }

    /// Creates the file of a share, before it is fetched.
    func begin(_ address: ShareAddress) throws -> Place {
        try? FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let path = file(address)
        let temporary = path + "." + Hex.encode(SecureRandom.bytes(8))
        return Place(begun: try PrivateFile.begin(temporary), temporary: temporary, path: path)
    }

    func remove(_ address: ShareAddress) { unlink(file(address)) }

    func file(_ address: ShareAddress) -> String {
        let name = SHA256.hash(Array("\(address.server)/s/\(address.id)".utf8)).bytes
        return folder.appending(path: Hex.encode(name) + ".json").path
    }
}
