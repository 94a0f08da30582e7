internal import Cryptography

/// Simulates a round.
extension FolderSync {
    private static let planPasses = 16

    /// Returns the actions that ``run()`` would carry out now. It changes neither the folder, nor the vault and its
    /// store, nor the server.
    ///
    /// New changes on the server are fetched into a copy of the store in memory. The room of the plan is not checked,
    /// nor whether files can be written. Names of conflict copies are those of today.
    /// - Throws: ``FolderError``, as ``run()`` does.
    public func plan() async throws -> FolderReport {
        do {
            let planner = FolderSync(
                OwnedItems(try await vault.trial(), of: owned.owner), root, settings, ReadOnlyFolders(inner: system))
            return try await planner.simulate()
        } catch let error as VaultError {
            if case .unavailable(.transport(.cancelled)) = error { throw FolderError.cancelled }
            throw FolderError.vault(error)
        } catch is CancellationError {
            throw FolderError.cancelled
        }
    }

    private func simulate() async throws -> FolderReport {
        let checked = try await refuseWrongPlace()
        var report = FolderReport()
        if try await isMarkerMissing() {
            report.warn(.markerMissing, root)
            try await fetchNews(&report)
            return report
        }
        let tree = try FolderTree(reading: root, system)
        guard let (id, isAnew, _) = try await recognize(tree, checked, &report) else { return report }
        try await fetchNews(&report)
        var round = Round(
            tree: tree, folder: id, allowed: isAnew ? [] : allowed, foldsCase: tree.folds, date: Self.today(),
            writer: try await writer())
        round.isReadOnly = try await !records.canWrite()
        try await round.takeWhole(records)
        try await simulate(&round, &report)
        report.unsent = try await owned.unsentCount()
        report.warnings = try await records.note(report.warnings, inFolder: id, isWhole: true)
        return report
    }

    private func fetchNews(_ report: inout FolderReport) async throws {
        do throws(VaultError) {
            let agreement: DeletionAgreement = allowed.contains(.here) ? .collections([settings.collection]) : .none
            report.isVaultHeld = try await owned.fetch(agreement, learns: false).isHeld
            report.removed = try await owned.takeRemoved()
        } catch {
            guard case .unavailable(let cause) = error, cause.isPassing else { throw error }
            report.isOffline = true
        }
    }

    private func simulate(_ round: inout Round, _ report: inout FolderReport) async throws {
        var simulation = FolderSimulation(
            try await view(&round, &report), occupied: Self.occupied(report, round.memory.skipped))
        var failed: Set<FolderAction> = []
        for _ in 0..<Self.planPasses {
            try Task.checkCancellation()
            var deletions = try await deletionGuard(round, simulation.view)
            let decided = FolderDecision.decide(simulation.view).filter {
                !failed.contains($0) && !round.refuses($0)
            }
            let (allowed, held, _) = deletions.permit(decided, simulation.view)
            round.deletions = deletions
            report.note(held, simulation.view)
            var actions = FolderAction.rulesFirst(allowed, after: failed, simulation.view)
            if actions.isEmpty {
                actions = EmptyFolderDecision.decide(simulation.view).filter {
                    !failed.contains($0) && !round.refuses($0)
                }
            }
            if actions.isEmpty { return }
            let before = simulation
            for action in actions where !simulation.carryOut(action, &report) { failed.insert(action) }
            guard actions.contains(where: \.changesRules) else { continue }
            try await plan(simulation, after: before, round.tree.rules)
            var next = FolderSimulation(
                try await view(&round, &report), occupied: Self.occupied(report, round.memory.skipped))
            next.takeRules(of: simulation)
            simulation = next
        }
    }

    /// Returns the folders with entries that are ignored or not files.
    private static func occupied(_ report: FolderReport, _ skipped: Set<FolderPath>) -> Set<FolderPath> {
        let ignored = report.ignored.compactMap {
            FolderPath(folderTitle: $0) ?? (try? FolderPath($0))
        }
        return Set((ignored + skipped).compactMap(\.folders.last))
    }

    /// Gives ignore files their planned content.
    private func plan(_ next: FolderSimulation, after before: FolderSimulation, _ rules: FolderRules) async throws {
        let (old, new) = (before.view.local, next.view.local)
        for path in Set(old.keys).union(new.keys)
        where IgnoreFile.isName(path.names[path.names.count - 1]) && old[path] != new[path] {
            guard let content = new[path] else {
                rules.plan(path, nil)
                continue
            }
            // A displaced file has its earlier content, and a new one the content of its item.
            let source = old.first { $0.value.digest == content.digest }?.key
            let kept = source.flatMap(rules.content)
            rules.plan(path, kept == nil ? try await self.content(content, in: next.view) : kept)
        }
    }

    /// Returns the content of a vault's item; nil when no item has it.
    private func content(_ content: FileContent, in view: FolderView) async throws -> [UInt8]? {
        guard let (id, remote) = view.remote.first(where: { $0.value.content.digest == content.digest }),
            let file = try await views.file(id, remote.stamp)
        else { return nil }
        if content.byteCount > IgnoreFile.byteLimit { return [UInt8](repeating: 0, count: IgnoreFile.byteLimit + 1) }
        do throws(VaultError) {
            return try await owned.content(of: file.attachment).withUnsafeBytes { Array($0) }
        } catch {
            try tolerate(error)
            return nil
        }
    }
}
