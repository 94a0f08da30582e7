public import Cryptography

/// One numbered change of the schema: plain SQL with one or more statements, which `psql` can run too.
public struct Migration: Sendable {
    /// The number, from 1 without gaps.
    public let version: Int
    /// The name, as in the file's name `0001_name.sql`.
    public let name: String
    /// The file's text. It runs inside a transaction and must not end it.
    public let sql: String
    /// The newest migration that a program must have to work with this schema. Programs without it do not work.
    public let oldestProgram: Int
    /// True if it removes objects that the previous release still needs.
    ///
    /// ``Migrator/finish()`` applies it, or a later release's ``Migrator/up()``.
    public let isFinishing: Bool
    /// SHA-256 of ``sql`` as UTF-8.
    public let checksum: SHA256Digest

    /// Makes a migration and computes its checksum.
    ///
    /// Lines of its first comment can control a rolling upgrade. `-- compatible with: 8` sets ``oldestProgram``, by
    /// default the migration's own number. `-- phase: finish` makes it a finishing one.
    public init(version: Int, name: String, sql: String) {
        self.version = version
        self.name = name
        self.sql = sql
        oldestProgram = Self.remark("compatible with", in: sql).flatMap { Int($0) } ?? version
        isFinishing = Self.remark("phase", in: sql) == "finish"
        checksum = SHA256.hash(sql.utf8)
    }

    private static func remark(_ name: String, in sql: String) -> Substring? {
        var rest = sql[...]
        while rest.hasPrefix("--") {
            let line = rest.prefix { $0 != "\n" }
            if line.hasPrefix("-- \(name): ") { return line.dropFirst(name.count + 5) }
            rest = rest[line.endIndex...].dropFirst()
        }
        return nil
    }
}

/// Compares a program's migrations with those applied to a database. Pure.
struct MigrationHistory {
    let known: [Migration]
    let applied: [MigrationStatements.Applied]

    /// All faults, in order of version.
    var findings: [MigrationFinding] {
        let newest = applied.last?.version ?? 0
        return versions.compactMap { version in
            switch (known(version), applied(version)) {
            case (let known?, nil):
                if version < newest {
                    .gap(version: version, name: known.name)
                } else if version >= firstFinishing {
                    .notFinished(version: version, name: known.name)
                } else {
                    .notApplied(version: version, name: known.name)
                }
            case (nil, let applied?):
                applied.oldestProgram <= known.count
                    ? .ahead(version: version, name: applied.name) : .unknown(version: version, name: applied.name)
            case (let known?, let applied?) where known.name != applied.name:
                .nameChanged(version: version, known: known.name, applied: applied.name)
            case (let known?, let applied?) where known.checksum.bytes != applied.checksum:
                .checksumChanged(version: version, name: known.name)
            default: nil
            }
        }
    }

    /// Faults that make a program incompatible with this schema.
    var incompatibilities: [MigrationFinding] {
        findings.filter {
            switch $0 {
            case .ahead, .notFinished, .notPlaced, .notCleanedUp, .lacks: false
            case .notApplied, .unknown, .checksumChanged, .nameChanged, .gap, .unsuitableEncoding: true
            }
        }
    }

    /// Faults that stop ``Migrator/up()``.
    var obstacles: [MigrationFinding] {
        findings.filter {
            switch $0 {
            case .notApplied, .notFinished, .notPlaced, .notCleanedUp, .lacks: false
            case .ahead, .unknown, .checksumChanged, .nameChanged, .gap, .unsuitableEncoding: true
            }
        }
    }

    /// The migrations that ``Migrator/up()`` has to apply.
    var missing: [Migration] { unfinished.filter { $0.version < firstFinishing } }

    /// The migrations that ``Migrator/finish()`` has to apply.
    var unfinished: [Migration] { known.filter { applied($0.version) == nil } }

    /// The version from which on all migrations are finishing ones.
    private var firstFinishing: Int { (known.last { !$0.isFinishing }?.version ?? 0) + 1 }

    var status: [MigrationStatus] {
        versions.map { version in
            let known = known(version)
            let applied = applied(version)
            return MigrationStatus(
                version: version, name: known?.name ?? applied?.name ?? "", appliedAt: applied?.appliedAt,
                isKnown: known != nil)
        }
    }

    private var versions: [Int] { Set(known.map(\.version) + applied.map(\.version)).sorted() }

    private func known(_ version: Int) -> Migration? { known.first { $0.version == version } }

    private func applied(_ version: Int) -> MigrationStatements.Applied? { applied.first { $0.version == version } }
}

/// A row of a schema's history, from any source.
public struct MigrationRecord: Sendable, Equatable {
    public let version: Int
    public let name: String
    /// SHA-256 of the applied file.
    public let checksum: [UInt8]
    /// The oldest compatible program; by default the migration itself.
    public let oldestProgram: Int

    public init(version: Int, name: String, checksum: [UInt8], oldestProgram: Int?) {
        self.version = version
        self.name = name
        self.checksum = checksum
        self.oldestProgram = oldestProgram ?? version
    }
}

extension Migrator {
    /// Returns the faults that would stop ``up()`` with these migrations after such a history. Needs no database.
    public static func obstacles(to migrations: [Migration], after records: [MigrationRecord]) -> [MigrationFinding] {
        let applied = records.sorted { $0.version < $1.version }.map {
            MigrationStatements.Applied(
                version: $0.version, name: $0.name, checksum: $0.checksum, appliedAt: .distantPast,
                oldestProgram: $0.oldestProgram)
        }
        return MigrationHistory(known: migrations, applied: applied).obstacles
    }
}
