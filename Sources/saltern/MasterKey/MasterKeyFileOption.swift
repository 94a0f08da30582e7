import CommandLineKit
import SalternServer

/// The path of the file: `--file FILE`, else `SALTERN_MASTER_KEY_FILE`.
struct MasterKeyFileOption {
    private let given: String?

    static let help = "  --file FILE      the file of the master key (SALTERN_MASTER_KEY_FILE)"

    init(_ arguments: inout Arguments) throws(UsageError) { given = try arguments.option("--file") }

    func file(_ console: Console) throws(CommandFailure) -> MasterKeyFile {
        if let given { return MasterKeyFile(path: given) }
        var settings = Settings(console.environment)
        let file = settings.masterKeyFile()
        try settings.finish()
        guard let file else { throw CommandFailure("no file is named") }
        return file
    }
}

extension Console {
    /// Prints the names of the keys, the active one first.
    func printKeys(_ key: MasterKey) {
        for (index, id) in key.ids.enumerated() { print(index == 0 ? "active  \(id)" : "older   \(id)") }
    }
}
