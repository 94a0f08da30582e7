internal import Cryptography

/// Carries out decided actions only on a view, as a round does on a folder and a vault.
struct FolderSimulation {
    private(set) var view: FolderView
    /// Generates ids of items that exist only in the simulation.
    private let newID: () -> ItemID

    /// Nil until it is needed.
    private var folders: SimulatedFolders?
    private let occupied: Set<FolderPath>

    /// - Parameter occupied: Folders with entries that are neither files nor folders of the view.
    init(_ view: FolderView, occupied: Set<FolderPath> = [], newID: @escaping () -> ItemID = { .random() }) {
        self.view = view
        self.occupied = occupied
        self.newID = newID
    }

    private mutating func changeFolders(_ body: (inout SimulatedFolders, inout FolderView) -> Void) {
        var folders = self.folders ?? SimulatedFolders(view, occupied: occupied)
        self.folders = nil
        body(&folders, &view)
        self.folders = folders
    }

    /// Carries out an action.
    /// - Returns: False when an obstacle prevents it.
    mutating func carryOut(_ action: FolderAction, _ report: inout FolderReport) -> Bool {
        switch action {
        case .note(let id, let path, let content):
            view.known[id] = KnownFile(path: path, content: content, stamp: view.remote[id]?.stamp)
        case .forget(let id): view.known[id] = nil
        case .upload(let path, let content, let id):
            let id = id ?? newID()
            let stamp = write(id, path, content)
            view.known[id] = KnownFile(path: path, content: content, stamp: stamp)
            report.uploaded.append(path)
        case .download(let id, let path, let over):
            guard view.local[path] == over, hasRoom(for: path), let remote = view.remote[id],
                let content = view.fetched(id, over: over)
            else { return false }
            if over == nil { place(path) }
            view.local[path] = content
            view.known[id] = KnownFile(
                path: path, content: remote.content, stamp: remote.path == path ? remote.stamp : nil)
            report.downloaded.append(path)
        case .moveHere(let id, let from, let to, let content):
            guard move(from, to, content) else { return false }
            view.known[id]?.path = to
            view.known[id]?.stamp = nil
            report.renamed.append(to)
        case .moveThere(let id, let path, let isHere):
            guard let remote = view.remote[id] else { return false }
            _ = write(id, path, remote.content)
            if isHere {
                view.known[id]?.path = path
                view.known[id]?.stamp = nil
            }
            report.renamed.append(path)
        case .deleteHere(let id, let path, let content):
            guard view.local[path] == content else { return false }
            changeFolders { $0.remove(path, &$1) }
            view.local[path] = nil
            view.known[id] = nil
            report.deletedHere.append(path)
        case .deleteThere(let id):
            if let path = view.remote[id]?.path { report.deletedThere.append(path) }
            storeTombstone(id)
            view.known[id] = nil
        case .mergeThere(let id): storeTombstone(id)
        case .setExecutable(let id, let path, let isExecutable):
            guard let remote = view.remote[id], view.local[path] != nil else { return false }
            view.local[path]?.isExecutable = isExecutable
            view.known[id] = KnownFile(path: path, content: remote.content, stamp: remote.stamp)
            report.downloaded.append(path)
        case .moveAside(let from, let to, let content):
            guard move(from, to, content) else { return false }
            report.conflicts.append(to)
        case .noteFolder, .forgetFolder, .makeFolderHere, .removeFolderHere, .makeFolderThere, .removeFolderThere:
            carryOutFolder(action, &report)
        }
        return true
    }

    private mutating func carryOutFolder(_ action: FolderAction, _ report: inout FolderReport) {
        switch action {
        case .noteFolder(let id, let path):
            view.knownFolders[id] = KnownFolder(path: path, stamp: view.remoteFolders[id]?.stamp)
        case .forgetFolder(let id): view.knownFolders[id] = nil
        case .makeFolderHere(let id, let path):
            changeFolders { folders, view in
                folders.add(path, &view)
                folders.setStanding(path, true)
            }
            view.folders.insert(path)
            view.emptyFolders.insert(path)
            view.knownFolders[id] = KnownFolder(path: path, stamp: view.remoteFolders[id]?.stamp)
            report.fetchedFolders.append(path)
        case .removeFolderHere(let id, let path):
            changeFolders { folders, view in
                folders.setStanding(path, false)
                folders.remove(path, &view)
            }
            view.folders.remove(path)
            view.emptyFolders.remove(path)
            view.knownFolders[id] = nil
            report.removedFoldersHere.append(path)
        case .makeFolderThere(let path):
            let (id, stamp) = (newID(), ItemStamp(revision: 1))
            changeFolders { folders, _ in folders.setStanding(path, true) }
            view.remoteFolders[id] = RemoteFolder(path: path, stamp: stamp)
            view.knownFolders[id] = KnownFolder(path: path, stamp: stamp)
            report.sentFolders.append(path)
        case .removeFolderThere(let id):
            if let path = view.remoteFolders[id]?.path {
                if view.knownFolders[id] != nil { report.removedFoldersThere.append(path) }
                changeFolders { folders, _ in folders.setStanding(path, false) }
            }
            view.remoteFolders[id] = nil
            view.knownFolders[id] = nil
            view.buried.insert(id)
        default: break
        }
    }

    private mutating func write(_ id: ItemID, _ path: FolderPath, _ content: FileContent) -> ItemStamp {
        let last = view.remote.values.compactMap(\.stamp.revision).max() ?? 0
        let stamp = ItemStamp(revision: last + 1)
        view.remote[id] = RemoteFile(path: path, content: content, stamp: stamp)
        view.buried.remove(id)
        return stamp
    }

    private mutating func storeTombstone(_ id: ItemID) {
        view.remote[id] = nil
        view.buried.insert(id)
    }

    private mutating func move(_ from: FolderPath, _ to: FolderPath, _ content: FileContent) -> Bool {
        guard view.local[from] == content, view.local[to] == nil else { return false }
        // Before the file is removed, so that it is counted.
        changeFolders { _, _ in }
        view.local[from] = nil
        guard hasRoom(for: to) else {
            view.local[from] = content
            return false
        }
        changeFolders { $0.remove(from, &$1) }
        place(to)
        view.local[to] = content
        return true
    }

    /// Puts a file at a path that may be an empty folder.
    private mutating func place(_ path: FolderPath) {
        if view.folders.contains(path) {
            view.folders = view.folders.filter { $0 != path && !$0.folders.contains(path) }
            view.emptyFolders.formIntersection(view.folders)
            folders = nil
        }
        changeFolders { $0.add(path, &$1) }
    }

    /// Returns true when neither a folder above the path is a file, nor the path a folder.
    private func hasRoom(for path: FolderPath) -> Bool {
        path.folders.allSatisfy { view.local[$0] == nil } && !view.local.keys.contains { $0.folders.contains(path) }
    }

    /// Copies the changes of ignore files from an earlier simulation.
    mutating func takeRules(of other: FolderSimulation) {
        func isRule(_ path: FolderPath?) -> Bool {
            path.map { IgnoreFile.isName($0.names[$0.names.count - 1]) } ?? false
        }
        for path in Set(view.local.keys).union(other.view.local.keys) where isRule(path) {
            view.local[path] = other.view.local[path]
        }
        for id in Set(view.remote.keys).union(other.view.remote.keys).union(view.known.keys)
        where isRule(view.remote[id]?.path) || isRule(other.view.remote[id]?.path) || isRule(view.known[id]?.path) {
            view.remote[id] = other.view.remote[id]
            view.known[id] = other.view.known[id]
            if other.view.buried.contains(id) { view.buried.insert(id) }
        }
    }
}

/// The folders of a simulation. They are created with their content, and removed when they become empty.
struct SimulatedFolders {
    /// The number of entries of each folder.
    private var entries: [FolderPath: Int] = [:]
    /// Folders that have items and therefore stay.
    private var standing: Set<FolderPath> = []

    /// - Parameter occupied: Folders with entries that are neither files nor folders of the view. They never become
    ///   empty.
    init(_ view: FolderView, occupied: Set<FolderPath>) {
        for path in view.local.keys { count(path) }
        for path in view.folders { count(path) }
        for folder in occupied { entries[folder, default: 0] += 1 }
        standing = Set(view.remoteFolders.values.map(\.path))
    }

    private mutating func count(_ path: FolderPath) {
        if let outer = path.folders.last { entries[outer, default: 0] += 1 }
    }

    /// Records that a folder has, or no longer has, an item.
    mutating func setStanding(_ folder: FolderPath, _ isStanding: Bool) {
        if isStanding { standing.insert(folder) } else { standing.remove(folder) }
    }

    /// Records a new file or folder.
    mutating func add(_ path: FolderPath, _ view: inout FolderView) {
        for folder in path.folders.reversed() {
            entries[folder, default: 0] += 1
            view.emptyFolders.remove(folder)
            if !view.folders.insert(folder).inserted { return }
        }
    }

    /// Records a removed file or folder.
    mutating func remove(_ path: FolderPath, _ view: inout FolderView) {
        for folder in path.folders.reversed() {
            entries[folder, default: 1] -= 1
            if entries[folder, default: 0] > 0 { return }
            if standing.contains(folder) {
                view.emptyFolders.insert(folder)
                return
            }
            view.folders.remove(folder)
            view.emptyFolders.remove(folder)
        }
    }
}

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
            tree: tree, folder: id, allowed: isAnew ? [] : allowed, foldsCase: tree.root.folds, date: Self.today(),
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
