internal import Foundation

/// Ignored files are neither sent nor fetched, and are deleted on neither side.
extension FolderSync {
    /// Removes ignored entries from a view, and those that wait until an ignore file is corrected.
    ///
    /// While a file is ignored, its state stays with a mark. It is valid again when the file is no longer ignored and
    /// exists on both sides. Otherwise the state is removed, so that no file that was missing during that time counts
    /// as deleted.
    func leaveOut(_ view: inout FolderView, _ round: inout Round, _ report: inout FolderReport) async throws {
        let rules = round.tree.rules
        if round.focus == nil, !rules.hasPatterns, rules.faults.isEmpty,
            !view.known.values.contains(where: \.isIgnored), !view.knownFolders.values.contains(where: \.isIgnored)
        {
            return
        }
        var changed: [ItemID: KnownFile?] = [:]
        for (id, known) in view.known {
            let file = Self.known(id, known, view, rules)
            if file != known { changed[id] = .some(file) }
            view.known[id] = file
            if file?.isIgnored == true || rules.fate(of: known.path) == .broken { view.ignored.insert(id) }
        }
        for (id, file) in view.remote where rules.fate(of: file.path) != .kept && view.known[id]?.path != file.path {
            view.ignored.insert(id)
        }
        try await leaveOutFolders(&view, round)
        for (path, fault) in rules.faults { report.warn(fault, path) }
        // Only the whole folder shows the deletions that wait for the correction.
        if !rules.faults.isEmpty { round.needsWhole = true }
        try await records.setKnownFiles(changed, in: round.folder)
    }

    /// Removes ignored folders that have items.
    private func leaveOutFolders(_ view: inout FolderView, _ round: Round) async throws {
        let rules = round.tree.rules
        var changed: [ItemID: KnownFolder?] = [:]
        for (id, known) in view.knownFolders {
            var folder: KnownFolder? = known
            switch rules.fate(ofFolder: known.path) {
            case .broken: view.ignored.insert(id)
            case .ignored:
                folder?.isIgnored = true
                view.ignored.insert(id)
            case .kept where known.isIgnored && view.isWalkComplete:
                folder?.isIgnored = false
                if view.remoteFolders[id] == nil || !view.folders.contains(known.path) { folder = nil }
            case .kept: if known.isIgnored { view.ignored.insert(id) }
            }
            if folder != known { changed[id] = .some(folder) }
            view.knownFolders[id] = folder
        }
        for (id, folder) in view.remoteFolders where rules.fate(ofFolder: folder.path) != .kept {
            view.ignored.insert(id)
        }
        try await records.setKnownFolders(changed, in: round.folder)
    }

    /// Returns the new state of a file.
    private static func known(
        _ id: ItemID, _ known: KnownFile, _ view: FolderView, _ rules: FolderRules
    ) -> KnownFile? {
        let remote = view.remote[id]
        var file = known
        switch rules.fate(of: known.path) {
        case .broken: break
        case .ignored:
            // Under its new name it is another local file.
            if let remote, remote.path != known.path, rules.fate(of: remote.path) == .kept { return nil }
            file.isIgnored = true
        case .kept:
            if let remote, remote.path != known.path, rules.fate(of: remote.path) == .ignored { return nil }
            guard known.isIgnored, view.isWalkComplete else { break }
            if remote == nil || view.local[known.path] == nil { return nil }
            file.isIgnored = false
        }
        return file
    }
}

extension FolderFocus {
    /// True when an ignore file has changed: then everything is examined.
    var isAboutRules: Bool {
        entries.contains { entry in
            IgnoreFile.isName(
                String(decoding: entry[((entry.lastIndex(of: UInt8(ascii: "/")) ?? -1) + 1)...], as: UTF8.self))
        }
    }
}

extension FolderAction {
    /// True when the action changes an ignore file in the folder: other actions are then decided with the new patterns.
    var changesRules: Bool {
        switch self {
        case .download, .moveHere, .deleteHere, .moveAside:
            placesHere.contains { IgnoreFile.isName($0.names[$0.names.count - 1]) }
        default: false
        }
    }

    /// The paths in the folder that the action changes or reads.
    private var placesHere: [FolderPath] {
        switch self {
        case .note(_, let path, _), .upload(let path, _, _), .download(_, let path, _), .moveThere(_, let path, _),
            .deleteHere(_, let path, _), .setExecutable(_, let path, _):
            [path]
        case .moveHere(_, let path, let other, _), .moveAside(let path, let other, _): [path, other]
        case .noteFolder(_, let path), .makeFolderHere(_, let path), .removeFolderHere(_, let path),
            .makeFolderThere(let path):
            [path]
        case .forget, .deleteThere, .mergeThere, .forgetFolder, .removeFolderThere: []
        }
    }

    /// Returns the affected paths on both sides.
    private func places(in view: FolderView) -> [FolderPath] {
        let remote = item.flatMap { view.remote[$0]?.path }
        let known = item.flatMap { view.known[$0]?.path }
        return placesHere + [remote, known].compactMap(\.self)
    }

    /// Returns the actions that are carried out now, those that change ignore files first. If one of those has failed,
    /// the actions in its folder wait.
    static func rulesFirst(
        _ actions: [FolderAction], after failed: some Sequence<FolderAction>, _ view: FolderView
    ) -> [FolderAction] {
        let waiting = failed.filter(\.changesRules).flatMap(\.placesHere)
            .filter { IgnoreFile.isName($0.names[$0.names.count - 1]) }.map { $0.names.dropLast() }
        let left = actions.filter { action in
            action.changesRules || waiting.isEmpty
                || !action.places(in: view).contains { path in waiting.contains { path.names.starts(with: $0) } }
        }
        let first = left.filter(\.changesRules)
        return first.isEmpty ? left : first
    }
}
