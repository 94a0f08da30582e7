public import Foundation

/// Syncs a folder of files with a collection of a vault.
///
/// Changes of one side are applied to the other. Files that were changed on both are kept twice. A deletion never
/// removes changed files. Deleted or replaced files are in a trash: of the folder (`.saltern/trash`, for 30 days) or of
/// the vault.
///
/// ```swift
/// let folder = FolderSync(vault: vault, root: url, settings: FolderSettings(collection: "files"))
/// let report = try await folder.run()
/// show(report.conflicts.count)
/// try await folder.watch { report in print(report.conflicts.count) }
/// ```
public actor FolderSync {
    let owned: OwnedItems
    let records: FolderRecords
    let views: FolderViews
    let root: String
    let settings: FolderSettings
    let system: any FolderSystem
    /// The deletions that the user has approved for the next round.
    var allowed: Set<DeletionDirection>
    var allowsDeletions: Bool { allowed == Set(DeletionDirection.allCases) }
    /// Files for which the plan had no room at the last attempt.
    var unfitting: [FolderPath: UnfittingFile] = [:]
    /// True after the line carried nothing of a file. The rest of the round skips other long files.
    var isCutOff = false
    /// True while this folder uses a store that it shares with other processes.
    var hasStore = false
    /// The number of other processes' writes to the store at the last check.
    var outsideWrites = 0
    /// The results that later rounds reuse; nil when the next one has to examine everything.
    private var memory: FolderMemory?

    /// - Parameter root: An existing folder. It gets a folder `.saltern`, which identifies it.
    public init(vault: Vault, root: URL, settings: FolderSettings = FolderSettings()) {
        self.init(OwnedItems(vault), root: root, settings: settings)
    }

    /// Syncs a folder with a collection of an account or of a shared vault.
    package init(_ owned: OwnedItems, root: URL, settings: FolderSettings) {
        self.init(owned, root.standardizedFileURL.resolvingSymlinksInPath().path, settings, DiskFolders())
    }

    var vault: Vault { owned.vault }

    /// Returns the collection that a folder syncs; nil for one without a marker.
    public static func collection(of root: URL) -> String? {
        let system = DiskFolders()
        return system.openRoot(root.path).flatMap { FolderMarkerFile.marker(in: $0, system) }?.collection
    }

    init(_ owned: OwnedItems, _ root: String, _ settings: FolderSettings, _ system: any FolderSystem) {
        self.owned = owned
        records = FolderRecords(owned: owned)
        views = FolderViews(owned: owned)
        self.root = root
        self.settings = settings
        self.system = system
        allowed = settings.allowedDeletions
    }

    /// True when the next round examines everything, regardless of its focus.
    var mustExamineAll: Bool { memory == nil }

    private static let rounds = 4
    private static let passes = 16

    /// Runs one round: syncs the vault with the server, then the folder with the vault, until they are equal.
    /// - Throws: ``FolderError``. Completed actions stay; the next round continues.
    @discardableResult
    public func run() async throws -> FolderReport { try await run(within: nil) }

    /// Runs one round that examines a part of the folder and the collection, if the previous rounds allow it.
    /// - Parameter focus: Everything that may have changed since the last round; nil for everything.
    func run(within focus: FolderFocus?) async throws -> FolderReport {
        let before = memory.take()
        isCutOff = false
        do {
            let checked = try await refuseWrongPlace()
            if try await isMarkerMissing() {
                // Nothing is created in a folder that was replaced.
                var report = FolderReport()
                report.warn(.markerMissing, root)
                _ = try await syncVault(allowed, &report)
                report.unsent = try await owned.unsentCount()
                return report
            }
            let tree = try FolderTree(root, system)
            tree.onRead = { [observers = vault.observers.progress] in observers.notify(.read($0)) }
            var report = FolderReport()
            guard let (id, isAnew) = try await identify(tree, checked, &report) else {
                // A replaced folder gives no information about the known one, and gets none of its files.
                _ = try await syncVault(allowed, &report)
                report.unsent = try await owned.unsentCount()
                return report
            }
            tree.parts.tidy()
            // The user has approved a new start on the condition that nothing is deleted.
            var round = Round(
                tree: tree, folder: id, allowed: isAnew ? [] : allowed, foldsCase: tree.root.folds,
                date: Self.today(), writer: try await writer())
            // If names or bits differ from those of the file system, only the whole folder can determine them.
            if let before, let focus, !isAnew, allowed.isEmpty, !tree.root.folds, tree.keepsExecutableBit {
                round.memory = before
                round.focus = focus
                round.focus?.formUnion(before.unfinished)
            }
            if round.focus?.isTooLarge ?? true { try await round.takeWhole(records) }
            do {
                try await goThrough(&round, &report)
            } catch {
                // A copy that was made during the round is incomplete.
                if round.hasAdvanced { try? await advance(round, &report) }
                throw error
            }
            if round.hasAdvanced { try await advance(round, &report) }
            try await records.noteHeld(report.held, inFolder: id)
            report.unsent = try await owned.unsentCount()
            report.warnings = try await records.note(report.warnings, inFolder: id, isWhole: round.focus == nil)
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
            round.isReadOnly = try await !records.canWrite()
            round.focus?.items.formUnion(news)
            try await supplyChunks(&round, &report)
            let hasDone = try await settle(&round, &report)
            let hasReturned = number == 0 && round.focus == nil ? try await reviewTrash(round, &report) : false
            if isCutOff { report.isOffline = true }
            if isCutOff || !hasDone && news.isEmpty && !hasReturned { break }
        }
        try await abandonUploads(round)
        if !report.isOffline && round.focus == nil {
            round.tree.parts.removeFetches()
            round.tree.marker.removeAbandoned()
            try await emptyTrash(round, &report)
        }
    }

    /// The state of one call of ``run()``.
    struct Round {
        let tree: FolderTree
        let folder: ItemID
        let allowed: Set<DeletionDirection>
        let foldsCase: Bool
        let date: String
        /// The name in conflict copies: of the device, or of the member of a shared vault.
        let writer: String
        var deletions: FolderDeletionGuard?
        /// The number of writes of other processes when `deletions` was read. They can be deletions of the same folder.
        var deletionWrites = 0
        /// The content of the folder at the last examination; nil when it was incomplete.
        var local: [FolderPath: FileContent]?
        /// The last synced content of both sides, at that time.
        var known: [FolderPath: FileContent] = [:]
        /// The content of the vault at that time.
        var remote: [ItemID: RemoteFile] = [:]
        /// The unused part of the plan, once it was fetched in this round.
        var room: PlanRoom?
        /// True when the folder's generation was increased in this round.
        var hasAdvanced = false
        /// The part that is examined; nil for everything.
        var focus: FolderFocus?
        /// The entries that a round with a focus has examined.
        var examined: Set<[UInt8]> = []
        var memory = FolderMemory()
        /// True when the next round has to examine everything.
        var needsWhole = false
        /// True in a shared vault that this account may only read. Changes in the folder then stay there.
        var isReadOnly = false

        /// Returns true for an action that this account may not carry out.
        func refuses(_ action: FolderAction) -> Bool { isReadOnly && action.isThere }

        /// Switches the round to examine everything.
        mutating func takeWhole(_ records: FolderRecords) async throws {
            focus = nil
            memory = FolderMemory()
            tree.hashes = try await records.fileHashes(in: folder)
        }

        /// Returns true when the round examines a path.
        func examines(_ path: FolderPath) -> Bool {
            focus == nil || FolderFocus.covers(examined, Array(path.text.utf8))
        }

        /// Returns true when the folder or the vault has the content.
        func has(_ digest: [UInt8]) -> Bool {
            local?.values.contains { $0.digest == digest } ?? false
                || remote.values.contains { $0.content.digest == digest }
        }
    }

    static func today() -> String { String(Date().ISO8601Format().prefix(10)) }

    /// - Returns: The items that have changed.
    private func syncVault(
        _ allowed: Set<DeletionDirection>, _ report: inout FolderReport
    ) async throws -> Set<ItemID> {
        do throws(VaultError) {
            let result =
                allowed.contains(.here)
                ? try await owned.agreeToDeletions(in: settings.collection) : try await owned.sync()
            report.isVaultHeld = result.isHeld
            report.removed.formUnion(try await owned.takeRemoved())
            return result.changed
        } catch {
            guard case .unavailable(let cause) = error else { throw error }
            // Permanent errors, such as another key or certificate, end the round.
            guard cause.isPassing else { throw error }
            report.isOffline = true
            return []
        }
    }

    // MARK: Steps

    /// Carries out the decided actions, and repeats the examination until there are none.
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
            var decided = FolderDecision.decide(view).filter { failed.index(forKey: $0) == nil }
            if decided.contains(where: round.refuses) {
                report.warn(.readOnly, root)
                decided.removeAll(where: round.refuses)
            }
            let (allowed, held, noted) = deletions.permit(decided, view)
            var permitted = FolderAction.rulesFirst(allowed, after: failed.keys, view)
            if permitted.isEmpty {
                permitted = EmptyFolderDecision.decide(view).filter {
                    failed.index(forKey: $0) == nil && !round.refuses($0)
                }
            }
            round.deletions = deletions
            round.deletionWrites = outsideWrites
            report.note(held, view)
            waiting = held.values.flatMap(\.self)
            // Before they are carried out, in case the process ends.
            try await records.noteDeletions(noted, from: view.knownCount, inFolder: round.folder)
            if permitted.isEmpty { break }
            if !round.hasAdvanced {
                try await advance(round, &report)
                round.hasAdvanced = true
            }
            round.focus?.formUnion(FolderFocus(permitted))
            for (number, action) in permitted.enumerated() {
                try Task.checkCancellation()
                if try await giveWay() {
                    // The decisions may be outdated.
                    try await round.takeWhole(records)
                    hasDone = true
                    break
                }
                _ = system.takeFailure()
                if try await carryOut(action, view, &round, &report) {
                    if !action.isNote { hasDone = true }
                } else {
                    failed[action] = .some(system.takeFailure())
                }
                vault.observers.progress.notify(.settled(number + 1, of: permitted.count))
            }
            if round.focus != nil, permitted.contains(where: \.changesRules) { try await round.takeWhole(records) }
        }
        for (action, failure) in failed where !report.hasRoomWarning(action.path) {
            report.warn(.failed, action.path?.text ?? "", failure)
        }
        var unfinished = FolderFocus(failed.keys)
        // A name may be in use outside of the examined part, which only the whole folder shows.
        if round.focus != nil, !unfinished.entries.isSubset(of: round.memory.unfinished.entries) {
            round.needsWhole = true
        }
        unfinished.formUnion(FolderFocus(waiting))
        round.memory.unfinished = unfinished
        return hasDone
    }

    func deletionGuard(_ round: Round, _ view: FolderView) async throws -> FolderDeletionGuard {
        if let known = round.deletions, round.deletionWrites == outsideWrites { return known }
        return FolderDeletionGuard(
            total: view.knownCount,
            try await records.deletions(inFolder: round.folder, of: view.knownCount, agreeing: round.allowed))
    }

    func view(_ round: inout Round, _ report: inout FolderReport) async throws -> FolderView {
        if let focus = round.focus {
            if !focus.isAboutRules, let view = try await view(of: focus, &round, &report) { return view }
            try await round.takeWhole(records)
        }
        let before = round.tree.hashes
        report.warnings.removeAll { $0.kind == .ignoreFile }
        let scan = try await walk(round.tree, into: &report)
        report.ignored = scan.ignored.sorted { $0.lexicographicallyPrecedes($1) }.map {
            String(decoding: $0, as: UTF8.self)
        }
        try await records.setFileHashes(round.tree.hashes, after: before, in: round.folder)
        try Task.checkCancellation()
        var (view, warnings) = try await views.folderView(round.folder, settings.collection)
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

    /// Returns the name of this device, or of the member of a shared vault, for names of conflict copies.
    func writer() async throws(VaultError) -> String {
        let name = try await owned.perform { _, items in try items.authorName }
        return FolderPath.words(of: name ?? settings.deviceName)
    }

    /// Converts pending states into known ones if the file exists.
    func settlePending(_ view: inout FolderView) {
        for (id, known) in view.known where known.isPending {
            view.known[id] = view.local[known.path] == known.content ? known.done : nil
        }
    }

    func complete(_ view: inout FolderView, _ round: Round, _ report: inout FolderReport) {
        view.foldsCase = round.foldsCase
        view.device = round.writer
        view.date = round.date
        // If another entry is at a file's path, the file was not deleted.
        let memory = round.memory
        for (id, known) in view.known where memory.hides(known.path) { view.ignored.insert(id) }
        for (id, file) in view.remote where memory.hides(file.path) { view.ignored.insert(id) }
        for (id, known) in view.knownFolders where memory.hides(known.path) { view.ignored.insert(id) }
        for (id, folder) in view.remoteFolders where memory.hides(folder.path) { view.ignored.insert(id) }
        round.tree.root.keep(view.remoteFolders.values.map(\.path) + view.outerFolders)
        if !settings.allowsHiddenExecutables, round.tree.executableBits != .neverSet {
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
    /// Returns true when the path, or a folder above it, is an entry that is not a file of the folder.
    fileprivate func hides(_ path: FolderPath) -> Bool {
        !skipped.isEmpty && (skipped.contains(path) || path.folders.contains { skipped.contains($0) })
    }
}

extension FolderReport {
    /// Records the waiting deletions of the last examination.
    mutating func note(_ held: [DeletionDirection: [FolderAction]], _ view: FolderView) {
        func paths(_ direction: DeletionDirection) -> [FolderPath] {
            (held[direction] ?? []).compactMap { action in
                if case .deleteThere(let id) = action { view.remote[id]?.path } else { action.path }
            }.sorted()
        }
        (heldHere, heldThere) = (paths(.here), paths(.there))
        self.held = HeldDeletions(here: heldHere.count, there: heldThere.count)
    }

    /// Returns true when the report already explains why a file was not sent.
    fileprivate func hasRoomWarning(_ path: FolderPath?) -> Bool {
        path.map { path in warnings.contains { $0.isNoRoom(for: path) } } ?? false
    }
}

extension FolderFocus {
    /// Creates the focus of the entries and items of actions.
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
    /// True for an action that changes neither side.
    fileprivate var isNote: Bool {
        switch self {
        case .note, .forget, .noteFolder, .forgetFolder: true
        default: false
        }
    }

    /// True for an action that changes items of the vault.
    var isThere: Bool {
        switch self {
        case .upload, .moveThere, .deleteThere, .mergeThere, .makeFolderThere, .removeFolderThere: true
        default: false
        }
    }

    /// The affected item; nil for a file without one.
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

    /// The affected file; nil when only its item is known.
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
