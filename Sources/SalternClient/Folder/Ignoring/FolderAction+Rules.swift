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
