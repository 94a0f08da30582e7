/// Warnings that rounds of a folder have reported and will repeat.
extension Store {
    /// The maximum number of stored warnings. Further ones are reported as new each time.
    private static let warningLimit = 10_000

    private static func factName(_ folder: ItemID) -> String { "warned-\(folder)" }

    func warned(in folder: ItemID) throws -> Set<[UInt8]> {
        let value = try database.rows("SELECT value FROM facts WHERE name = ?", .text(Self.factName(folder))) {
            $0.blob(0) ?? []
        }.first
        return Set((value ?? []).split(separator: 0).map { Array($0) })
    }

    func setWarned(_ warnings: Set<[UInt8]>, in folder: ItemID) throws {
        if try warned(in: folder) == warnings { return }
        try database.execute("DELETE FROM facts WHERE name = ?", .text(Self.factName(folder)))
        if warnings.isEmpty { return }
        let names = warnings.sorted { $0.lexicographicallyPrecedes($1) }.prefix(Self.warningLimit)
        try database.execute(
            "INSERT INTO facts (name, value) VALUES (?, ?)", .text(Self.factName(folder)),
            .blob(Array(names.joined(separator: [0]))))
    }
}

extension FolderWarning {
    /// True when later rounds repeat it until a person corrects the cause.
    var isLasting: Bool {
        switch kind {
        case .link, .specialFile, .unusableName, .nestedFolder, .refusedTitle: true
        default: false
        }
    }

    /// In bytes: texts that are equal in Swift can be two names on a disk.
    var name: [UInt8] { Array("\(kind.rawValue) \(path)".utf8) }
}
