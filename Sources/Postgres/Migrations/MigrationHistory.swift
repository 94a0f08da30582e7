internal import Cryptography

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
