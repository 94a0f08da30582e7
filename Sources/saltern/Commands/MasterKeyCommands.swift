import CommandLineKit
import HTTPCore
import SalternServer

struct CreateMasterKey: Command {
    static let words = ["master-key", "create"]
    static let summary = "make the key that seals secrets in the database, in a file of its own"
    static let help = """
        \(MasterKeyFileOption.help)

        Overwrites nothing. Keep a copy apart from the copies of the database: together they give the secrets away, and
        without it they are lost.
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
    static let summary = "put a new key in front; the others go on opening what they have sealed"
    static let help = """
        \(MasterKeyFileOption.help)

        Give the file to every node and send each SIGHUP; then saltern master-key reseal, and saltern master-key prune.
        """

    let option: MasterKeyFileOption

    init(_ arguments: inout Arguments) throws(UsageError) { option = try MasterKeyFileOption(&arguments) }

    func run(_ console: Console) async throws {
        console.printKeys(
            try option.file(console).change { key throws(MasterKeyError) in try key.rotated() })
    }
}
