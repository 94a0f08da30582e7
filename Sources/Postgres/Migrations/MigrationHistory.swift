internal import Cryptography

/// The migrations that a program knows against those that a database has had. Pure.
struct MigrationHistory {
    let known: [Migration]
    let applied: [MigrationStatements.Applied]

    /// Everything that is wrong, in order of version.
    var findings: [MigrationFinding] {
        let newest = applied.last?.version ?? 0
        return versions.compactMap { version in
            switch (known(version), applied(version)) {
            case (let known?, nil):
                version < newest
                    ? .gap(version: version, name: known.name) : .notApplied(version: version, name: known.name)
            case (nil, let applied?): .unknown(version: version, name: applied.name)
            case (let known?, let applied?) where known.name != applied.name:
                .nameChanged(version: version, known: known.name, applied: applied.name)
            case (let known?, let applied?) where known.checksum.bytes != applied.checksum:
                .checksumChanged(version: version, name: known.name)
            default: nil
            }
        }
    }

    /// What keeps ``Migrator/up()`` from going on.
    var obstacles: [MigrationFinding] {
        findings.filter { if case .notApplied = $0 { false } else { true } }
    }

    /// What ``Migrator/up()`` has to apply.
    var missing: [Migration] {
        known.filter { applied($0.version) == nil }
    }

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
