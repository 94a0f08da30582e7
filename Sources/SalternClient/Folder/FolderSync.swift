public import Foundation

/// Keeps a folder of files and a collection of a vault the same.
///
/// What is changed on one side goes to the other; what is changed on both is kept twice. Nothing is deleted that somebody
/// has changed, and what is deleted or replaced is in a trash: of the folder (`.saltern/trash`, for 30 days) or of the vault.
public actor FolderSync {
    let vault: Vault
    let root: String
    let settings: FolderSettings
    let system: any FolderSystem
    /// To which deletions a person has agreed in the round that comes.
    var allowed: Set<DeletionDirection>
    var allowsDeletions: Bool { allowed == Set(DeletionDirection.allCases) }
    /// Files for which the plan had no room when they were looked at last.
    var unfitting: [FolderPath: UnfittingFile] = [:]
    /// True after the server could not be reached for a file. The rest of the round tries no other long file.
    var isCutOff = false
    /// Whether this folder uses a store that other processes use meanwhile.
    var hasStore = false
    /// How often other processes had written to the store when that was asked last.
    var outsideWrites = 0
    /// What the last round has left to later ones; nil when the next one has to examine everything.
    private var memory: FolderMemory?

    /// - Parameter root: A folder that is there. It gets a folder `.saltern`, by which it is known again.
    public init(vault: Vault, root: URL, settings: FolderSettings = FolderSettings()) {
        self.init(vault, root.standardizedFileURL.resolvingSymlinksInPath().path, settings, DiskFolders())
    }

    /// Returns the collection with which a folder is in sync; nil for one that has no marker.
    public static func collection(of root: URL) -> String? {
        let system = DiskFolders()
        return system.openRoot(root.path).flatMap { FolderTree.marker(in: $0, system) }?.collection
    }

    init(_ vault: Vault, _ root: String, _ settings: FolderSettings, _ system: any FolderSystem) {
        self.vault = vault
        self.root = root
        self.settings = settings
        self.system = system
        allowed = settings.allowedDeletions
    }

    /// Whether the next round examines everything, whatever it is asked for.
    var mustExamineAll: Bool { memory == nil }

    private static let rounds = 4
    private static let passes = 16

    /// One round: brings vault and server together, then folder and vault, until nothing is left to do.
    /// - Throws: ``FolderError``. What was done by then is done; the next round goes on.
    @discardableResult
    public func run() async throws -> FolderReport { try await run(within: nil) }

    /// One round that examines a part of the folder and the collection, where the rounds before it allow that.
    /// - Parameter focus: Everything that may have changed since the last round; nil for everything.
    func run(within focus: FolderFocus?) async throws -> FolderReport {
        let before = memory.take()
        isCutOff = false
        do {
            try await refuseWrongPlace()
            if try await isMarkerMissing() {
                // Nothing is made in a folder that is not the one that is known.
                var report = FolderReport()
                report.warn(.markerMissing, root)
                _ = try await syncVault(allowed, &report)
                report.unsent = try await vault.unsentCount()
                return report
            }
            let tree = try FolderTree(root, system)
            tree.onRead = { [observers = vault.progressObservers] in observers.notify(.read($0)) }
            var report = FolderReport()
            guard let (id, isAnew) = try await identify(tree, &report) else {
                // What is not the folder that is known says nothing about it, and gets nothing that belongs in it.
                _ = try await syncVault(allowed, &report)
                report.unsent = try await vault.unsentCount()
                return report
            }
            // Who has agreed that a folder begins anew has been told that nothing is deleted.
            var round = Round(
                tree: tree, folder: id, allowed: isAnew ? [] : allowed, foldsCase: tree.folds,
                date: Self.today())
            // Where names or bits are not what the file system shows, the whole folder decides what they are.
            if let before, let focus, !isAnew, allowed.isEmpty, !tree.folds, tree.keepsExecutableBit {
                round.memory = before
                round.focus = focus
                round.focus?.formUnion(before.unfinished)
            }
            if round.focus?.isTooLarge ?? true { try await round.takeWhole(vault) }
            do {
                try await goThrough(&round, &report)
            } catch {
                // A copy that was made meanwhile has not all of it.
                if round.hasAdvanced { try? await advance(round, &report) }
                throw error
            }
            if round.hasAdvanced { try await advance(round, &report) }
            try await vault.noteHeld(report.held, inFolder: id)
            report.unsent = try await vault.unsentCount()
            report.warnings = try await vault.note(report.warnings, inFolder: id, isWhole: round.focus == nil)
            if !round.needsWhole { memory = round.memory }
            return report
        } catch let error as VaultError {
            if case .unavailable(.transport(.cancelled)) = error { throw FolderError.cancelled }
            throw FolderError.vault(error)
        } catch is CancellationError {
            throw FolderError.cancelled
        }
    }

    private func goThrough(_ round: inout Round, _ report: inout FolderReport) async throws {
        for number in 0..<Self.rounds {
            let news = try await syncVault(round.allowed, &report)
            round.focus?.items.formUnion(news)
            try await supplyChunks(&round, &report)
            let hasDone = try await settle(&round, &report)
            let hasReturned = number == 0 && round.focus == nil ? try await reviewTrash(round, &report) : false
            if isCutOff { report.isOffline = true }
            if isCutOff || !hasDone && news.isEmpty && !hasReturned { break }
        }
        try await abandonUploads(round)
        if !report.isOffline && round.focus == nil {
            round.tree.removeFetches()
            try await emptyTrash(round, &report)
        }
    }

    /// What one call of ``run()`` goes on with.
    struct Round {
        let tree: FolderTree
        let folder: ItemID
        let allowed: Set<DeletionDirection>
        let foldsCase: Bool
        let date: String
        var deletions: FolderDeletionGuard?
        /// What was in the folder when it was looked at last; nil when not all of it was seen.
        var local: [FolderPath: FileContent]?
        /// What both sides were, as was known then.
        var known: [FolderPath: FileContent] = [:]
        /// What the vault had then.
        var remote: [ItemID: RemoteFile] = [:]
        /// What is left of the plan, once somebody has asked in this round.
        var room: PlanRoom?
        /// Whether the folder's generation says that something was changed.
        var hasAdvanced = false
        /// The part that is examined; nil for everything.
        var focus: FolderFocus?
        /// The entries that a round with a focus has examined.
        var examined: Set<[UInt8]> = []
        var memory = FolderMemory()
        /// Whether the next round has to examine everything.
        var needsWhole = false

        /// From now on everything is examined.
        mutating func takeWhole(_ vault: Vault) async throws {
            focus = nil
            memory = FolderMemory()
            tree.hashes = try await vault.fileHashes(in: folder)
        }

        /// Returns whether the round examines a path.
        func examines(_ path: FolderPath) -> Bool {
            focus == nil || FolderFocus.covers(examined, Array(path.text.utf8))
        }

        /// Returns whether the folder or the vault has the content somewhere.
        func has(_ digest: [UInt8]) -> Bool {
            local?.values.contains { $0.digest == digest } ?? false
                || remote.values.contains { $0.content.digest == digest }
        }
    }

    static func today() -> String { String(Date().ISO8601Format().prefix(10)) }

    /// - Returns: The items that are other than before.
    private func syncVault(
        _ allowed: Set<DeletionDirection>, _ report: inout FolderReport
    ) async throws -> Set<ItemID> {
        do throws(VaultError) {
            let result =
                allowed.contains(.here)
                ? try await vault.agreeToDeletions(in: settings.collection) : try await vault.sync()
            report.isVaultHeld = result.isHeld
            report.removed.formUnion(await vault.takeRemoved())
            return result.changed
        } catch {
            guard case .unavailable(let cause) = error else { throw error }
            // Another key, another certificate or nonsense does not pass.
            guard cause.isPassing else { throw error }
            report.isOffline = true
            return []
        }
    }

    // MARK: Steps

    /// Does what is decided, looks again, until nothing is left.
    private func settle(_ round: inout Round, _ report: inout FolderReport) async throws -> Bool {
        var hasDone = false
        var failed: [FolderAction: SystemFailure?] = [:]
        var waiting: [FolderAction] = []
        for _ in 0..<Self.passes {
            let view = try await view(&round, &report)
            round.local = view.isWalkComplete ? view.local : nil
            round.remote = view.remote
            round.known = Dictionary(view.known.values.map { ($0.path, $0.content) }) { _, last in last }
            var deletions = try await deletionGuard(round, view)
            let decided = FolderDecision.decide(view).filter { failed.index(forKey: $0) == nil }
            let (allowed, held, noted) = deletions.permit(decided, view)
            var permitted = FolderAction.rulesFirst(allowed, after: failed.keys, view)
            if permitted.isEmpty {
                permitted = EmptyFolderDecision.decide(view).filter { failed.index(forKey: $0) == nil }
            }
            round.deletions = deletions
            report.note(held, view)
            waiting = held.values.flatMap(\.self)
            // Before they are carried out, however this process ends.
            try await vault.noteDeletions(noted, from: view.knownCount, inFolder: round.folder)
            if permitted.isEmpty { break }
            if !round.hasAdvanced {
                try await advance(round, &report)
                round.hasAdvanced = true
            }
            round.focus?.formUnion(FolderFocus(permitted))
            for (number, action) in permitted.enumerated() {
                try Task.checkCancellation()
                if try await giveWay() {
                    // What was decided may be out of date.
                    try await round.takeWhole(vault)
                    hasDone = true
                    break
                }
                _ = system.takeFailure()
                if try await carryOut(action, view, &round, &report) {
                    if !action.isNote { hasDone = true }
                } else {
                    failed[action] = .some(system.takeFailure())
                }
                vault.progressObservers.notify(.settled(number + 1, of: permitted.count))
            }
            if round.focus != nil, permitted.contains(where: \.changesRules) { try await round.takeWhole(vault) }
        }
        for (action, failure) in failed where !report.hasRoomWarning(action.path) {
            report.warn(.failed, action.path?.text ?? "", failure)
        }
        var unfinished = FolderFocus(failed.keys)
        // A name that is taken outside of what was examined is a reason that only the whole folder shows.
        if round.focus != nil, !unfinished.entries.isSubset(of: round.memory.unfinished.entries) {
            round.needsWhole = true
        }
        unfinished.formUnion(FolderFocus(waiting))
        round.memory.unfinished = unfinished
        return hasDone
    }

    func deletionGuard(_ round: Round, _ view: FolderView) async throws -> FolderDeletionGuard {
        if let known = round.deletions { return known }
        return FolderDeletionGuard(
            total: view.knownCount,
            try await vault.deletions(inFolder: round.folder, of: view.knownCount, agreeing: round.allowed))
    }

    func view(_ round: inout Round, _ report: inout FolderReport) async throws -> FolderView {
        if let focus = round.focus {
            if !focus.isAboutRules, let view = try await view(of: focus, &round, &report) { return view }
            try await round.takeWhole(vault)
        }
        let before = round.tree.hashes
        report.warnings.removeAll { $0.kind == .ignoreFile }
        let scan = try await walk(round.tree, into: &report)
        report.ignored = scan.ignored.sorted { $0.lexicographicallyPrecedes($1) }.map {
            String(decoding: $0, as: UTF8.self)
        }
        try await vault.setFileHashes(round.tree.hashes, after: before, in: round.folder)
        try Task.checkCancellation()
        var (view, warnings) = try await vault.folderView(round.folder, settings.collection)
        for warning in warnings { report.warn(warning.kind, warning.path) }
        view.take(scan)
        if round.foldsCase { view.takeKnownSpellings() }
        if !round.tree.keepsExecutableBit { view.takeKnownExecutableBits() }
        view.isWalkComplete = scan.isComplete
        round.memory.obstacles = scan.obstacles
        round.memory.skipped = scan.skipped
        settlePending(&view)
        try await leaveOut(&view, &round, &report)
        complete(&view, round, &report)
        return view
    }

    /// What was about to be so is known where it has come to be so.
    func settlePending(_ view: inout FolderView) {
        for (id, known) in view.known where known.isPending {
            view.known[id] = view.local[known.path] == known.content ? known.done : nil
        }
    }

    func complete(_ view: inout FolderView, _ round: Round, _ report: inout FolderReport) {
        view.foldsCase = round.foldsCase
        view.device = FolderPath.words(of: settings.deviceName)
        view.date = round.date
        // Where something else is than a file, nobody has deleted what was there.
        let memory = round.memory
        for (id, known) in view.known where memory.hides(known.path) { view.ignored.insert(id) }
        for (id, file) in view.remote where memory.hides(file.path) { view.ignored.insert(id) }
        for (id, known) in view.knownFolders where memory.hides(known.path) { view.ignored.insert(id) }
        for (id, folder) in view.remoteFolders where memory.hides(folder.path) { view.ignored.insert(id) }
        round.tree.keep(view.remoteFolders.values.map(\.path) + view.outerFolders)
        if !settings.allowsHiddenExecutables, round.tree.keepsExecutableBit {
            for (id, path) in view.arrivingHiddenExecutables() {
                view.ignored.insert(id)
                report.warn(.hiddenExecutable, path.text)
            }
        }
    }
}

extension FolderView {
    mutating func take(_ scan: FolderTree.Scan) {
        local = scan.files
        folders = scan.folders
        emptyFolders = scan.emptyFolders
    }
}

extension FolderMemory {
    /// Whether what is no file of ours is at this place, or where one of its folders would be.
    fileprivate func hides(_ path: FolderPath) -> Bool {
        !skipped.isEmpty && (skipped.contains(path) || path.folders.contains { skipped.contains($0) })
    }
}

extension FolderReport {
    /// Notes the deletions that wait, as the last look has found them.
    mutating func note(_ held: [DeletionDirection: [FolderAction]], _ view: FolderView) {
        func paths(_ direction: DeletionDirection) -> [FolderPath] {
            (held[direction] ?? []).compactMap { action in
                if case .deleteThere(let id) = action { view.remote[id]?.path } else { action.path }
            }.sorted()
        }
        (heldHere, heldThere) = (paths(.here), paths(.there))
        self.held = HeldDeletions(here: heldHere.count, there: heldThere.count)
    }

    /// Whether it is said why a file was not sent.
    fileprivate func hasRoomWarning(_ path: FolderPath?) -> Bool {
        path.map { path in warnings.contains { $0.isNoRoom(for: path) } } ?? false
    }
}

extension FolderFocus {
    /// What actions are about.
    fileprivate init(_ actions: some Sequence<FolderAction>) {
        for action in actions {
            if let path = action.path { entries.insert(Array(path.text.utf8)) }
            switch action {
            case .moveHere(_, _, let path, _), .moveAside(_, let path, _): entries.insert(Array(path.text.utf8))
            default: break
            }
            if let item = action.item { items.insert(item) }
        }
    }
}

extension FolderAction {
    /// Whether it changes neither side.
    fileprivate var isNote: Bool {
        switch self {
        case .note, .forget, .noteFolder, .forgetFolder: true
        default: false
        }
    }

    /// The item that it is about; nil for a file that has none.
    var item: ItemID? {
        switch self {
        case .note(let id, _, _), .forget(let id), .download(let id, _, _), .moveHere(let id, _, _, _),
            .moveThere(let id, _, _), .deleteHere(let id, _, _), .deleteThere(let id), .mergeThere(let id),
            .setExecutable(let id, _, _):
            id
        case .noteFolder(let id, _), .forgetFolder(let id), .makeFolderHere(let id, _), .removeFolderHere(let id, _),
            .removeFolderThere(let id):
            id
        case .upload(_, _, let id): id
        case .moveAside, .makeFolderThere: nil
        }
    }

    /// The file that it is about; nil when only its item is known.
    fileprivate var path: FolderPath? {
        switch self {
        case .note(_, let path, _), .upload(let path, _, _), .download(_, let path, _), .moveThere(_, let path, _),
            .deleteHere(_, let path, _), .setExecutable(_, let path, _):
            path
        case .moveHere(_, let path, _, _), .moveAside(let path, _, _): path
        case .noteFolder(_, let path), .makeFolderHere(_, let path), .removeFolderHere(_, let path),
            .makeFolderThere(let path):
            path
        case .forget, .deleteThere, .mergeThere, .forgetFolder, .removeFolderThere: nil
        }
    }
}
