import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct CreateSigningKey: Command {
    static let words = ["signing-key", "create"]
    static let summary = "create the keys of identity tokens in a file"
    static let example = "saltern signing-key create --file /var/lib/saltern/signing-keys"
    static let help = """
        \(SigningKeyFileOption.help)

        Overwrites nothing. Copy the file to every node. Services fetch the public keys
        from /.well-known/jwks.json.
        """

    private let option: SigningKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try SigningKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        let now = SystemWallClock().now
        console.printKeys(try option.file(console).create(at: now), at: now)
    }
}

struct ListSigningKeys: Command {
    static let words = ["signing-key", "list"]
    static let summary = "list the keys of identity tokens by first use"
    static let example = "saltern signing-key list"
    static let help = """
        \(SigningKeyFileOption.help)
          --json           one object, for scripts
        """

    private let option: SigningKeyFileOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        option = try SigningKeyFileOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let now = SystemWallClock().now
        let keys = try option.file(console).read()
        guard asJSON else { return console.printKeys(keys, at: now) }
        console.printJSON { writer in
            writer.array("keys") { writer in
                for key in keys.keys {
                    writer.object { writer in
                        writer.member("id", key.id)
                        writer.member("state", keys.state(of: key, at: now))
                        writer.member("usableFrom", key.usableFrom.utc)
                    }
                }
            }
        }
    }
}

struct RotateSigningKey: Command {
    static let words = ["signing-key", "rotate"]
    static let summary = "add the next key, which signs in a day"
    static let example = "saltern signing-key rotate"
    static let help = """
        \(SigningKeyFileOption.help)

        Copy the file to every node and send each server SIGHUP within the day. They
        publish the key at once, and sign with it a day later. Then run `saltern
        signing-key prune`.
        """

    private let option: SigningKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try SigningKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        let now = SystemWallClock().now
        let keys = try option.file(console).change { keys throws(SigningKeyError) in try keys.rotated(at: now) }
        console.printKeys(keys, at: now)
    }
}

struct PruneSigningKeys: Command {
    static let words = ["signing-key", "prune"]
    static let summary = "remove keys that were replaced a day ago"
    static let example = "saltern signing-key prune"
    static let help = """
        \(SigningKeyFileOption.help)

        No valid token needs such a key. Copy the file to every node and send each
        server SIGHUP.
        """

    private let option: SigningKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try SigningKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        let now = SystemWallClock().now
        console.printKeys(
            try option.file(console).change { keys throws(SigningKeyError) in keys.pruned(at: now) }, at: now)
    }
}

/// Selects the file: `--file FILE`, or else `SALTERN_SIGNING_KEY_FILE`.
struct SigningKeyFileOption {
    private let given: String?

    static let help = "  --file FILE      the file of the signing keys (\(Setting.signingKeyFile))"

    init(_ arguments: inout Arguments) throws(UsageError) { given = try arguments.option("--file") }

    func file(_ console: Console) throws(CommandFailure) -> SigningKeyFile {
        if let given { return SigningKeyFile(path: given) }
        var settings = Settings(console.environment)
        let path = settings.requiredText(
            .signingKeyFile, "where the signing keys are; or name the file with --file")
        try settings.finish()
        return SigningKeyFile(path: path)
    }
}

extension SigningKeys {
    /// Returns the word for a key's state in lists.
    fileprivate func state(of key: SigningKey, at now: Timestamp) -> String {
        let active = active(at: now)
        if key.id == active.id { return "active" }
        return key.usableFrom > active.usableFrom ? "next" : "older"
    }
}

extension Console {
    /// Prints the names of the keys in the order of their first use.
    fileprivate func printKeys(_ keys: SigningKeys, at now: Timestamp) {
        var table = Table([.text("key"), .text("state"), .text("first use")])
        for key in keys.keys { table.append([key.id, keys.state(of: key, at: now), key.usableFrom.shown]) }
        write(table.takeText())
    }
}
