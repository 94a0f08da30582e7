import CommandLineKit
import HTTPCore
import SalternServer

struct CreateMasterKey: Command {
    static let words = ["master-key", "create"]
    static let summary = "create the master key in a file"
    static let example = "saltern master-key create --file /etc/saltern/master-key"
    static let help = """
        \(MasterKeyFileOption.help)

        The master key seals secrets in the database. Overwrites nothing. Store a copy
        separately from copies of the database: together they reveal the secrets, and
        without the key the secrets are lost.
        """

    let option: MasterKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try MasterKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        console.printKeys(try option.file(console).create())
    }
}

struct ListMasterKeys: Command {
    static let words = ["master-key", "list"]
    static let summary = "print the names of the keys, the active one first"
    static let example = "saltern master-key list"
    static let help = """
        \(MasterKeyFileOption.help)
          --json           one object, for scripts
        """

    let option: MasterKeyFileOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        option = try MasterKeyFileOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let key = try option.file(console).read()
        guard asJSON else { return console.printKeys(key) }
        console.printJSON { writer in
            writer.array("keys") { writer in
                for id in key.ids { writer.string("\(id)") }
            }
        }
    }
}

struct RotateMasterKey: Command {
    static let words = ["master-key", "rotate"]
    static let summary = "add a new active master key"
    static let example = "saltern master-key rotate"
    static let help = """
        \(MasterKeyFileOption.help)

        Older keys still open what they have sealed. Copy the file to every node and
        send each server SIGHUP. Then run `saltern master-key reseal`, and `saltern
        master-key prune`.
        """

    let option: MasterKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try MasterKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        console.printKeys(
            try option.file(console).change { key throws(MasterKeyError) in try key.rotated() })
    }
}

struct ResealSecrets: Command {
    static let words = ["master-key", "reseal"]
    static let summary = "seal all secrets with the active master key"
    static let example = "saltern master-key reseal"
    static let help = """
        \(MasterKeyFileOption.help)

        Runs beside the servers, and can be stopped and run again. Every node must have
        the new key first: see `saltern master-key rotate`. Exit status 1 when a secret
        cannot be opened; it is not changed.

        \(DatabaseCommand.ownerHelp)
        """

    let option: MasterKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try MasterKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        let key = try option.file(console).read()
        let report = try await DatabaseCommand.asOwner(console) { database in
            var bar = ProgressBar(console, "secrets sealed")
            let report = try await SealedSecrets(database: database).reseal(with: key) { bar.show($0) }
            bar.end()
            return report
        }
        console.print("sealed \(report.resealed) secrets with the key \(key.ids[0])")
        guard report.unreadable.isEmpty else {
            throw CommandFailure(report.unreadable.map { "\($0.secret): \($0.reason)" })
        }
    }
}

struct PruneMasterKeys: Command {
    static let words = ["master-key", "prune"]
    static let summary = "remove unused older keys from the master key file"
    static let example = "saltern master-key prune"
    static let help = """
        \(MasterKeyFileOption.help)

        Fails while the database needs one of them: see `saltern master-key reseal`. An
        earlier backup of the database needs the file of that time.

        \(DatabaseCommand.ownerHelp)
        """

    let option: MasterKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try MasterKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        let key = try await Self.prune(try option.file(console)) {
            try await DatabaseCommand.asOwner(console) { try await SealedSecrets(database: $0).counts() }
        }
        console.printKeys(key)
    }

    /// Removes the older keys from the file.
    /// - Parameter counts: Returns the number of secrets of each key. It is called before the removal and after it.
    /// - Throws: ``CommandFailure`` while a secret needs one of the keys. The file then still has them.
    static func prune(
        _ file: MasterKeyFile, counts: () async throws -> [MasterKeyID: Int64]
    ) async throws -> MasterKey {
        // Only keys that are older now may be removed, not those that a simultaneous rotation makes older.
        let former = try file.read()
        let older = Set(former.ids.dropFirst())
        try requireUnused(older, try await counts())
        let key = try file.change { key throws(MasterKeyError) in key.removing(older) }
        do {
            // A server without the new key may have sealed a secret since the first count.
            try requireUnused(older, try await counts())
        } catch {
            _ = try file.change { key throws(MasterKeyError) in try key.restoring(older, of: former) }
            throw error
        }
        return key
    }

    private static func requireUnused(
        _ keys: Set<MasterKeyID>, _ counts: [MasterKeyID: Int64]
    ) throws(CommandFailure) {
        let needed = counts.filter { keys.contains($0.key) }
        guard needed.isEmpty else {
            throw CommandFailure(
                needed.map { "\($0.value) secrets need the key \($0.key); saltern master-key reseal reseals them" })
        }
    }
}
