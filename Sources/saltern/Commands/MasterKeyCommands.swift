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
