/// Decides the actions when a folder and a vault differ. It is pure, and the only place that decides them.
///
/// It returns the actions that are possible at once. The caller carries them out and repeats the decision until there
/// are none.
struct FolderDecision {
    let view: FolderView
    private(set) var actions: [FolderAction] = []

    /// Files that were renamed in the folder: the new path of an item.
    private var renamed: [ItemID: FolderPath] = [:]
    /// The item of a local path.
    private var owner: [FolderPath: ItemID] = [:]
    /// Local paths, by name in the form that the file system compares.
    private var localByKey: [[UInt8]: FolderPath] = [:]
    /// The item that has a path in the vault.
    private var holders: [[UInt8]: ItemID] = [:]
    private var localFolders: Set<[UInt8]> = []
    private var remoteFolders: Set<[UInt8]> = []
    /// Items that this pass has decided about.
    private var settled: Set<ItemID> = []
    private var movedAside: Set<FolderPath> = []
    private var taken: Set<[UInt8]> = []

    static func decide(_ view: FolderView) -> [FolderAction] {
        var decision = FolderDecision(view)
        decision.settleNames()
        decision.settleLocalNames()
        for (id, known) in view.known.sorted(by: { $0.key < $1.key }) where !decision.isSettled(id) {
            decision.decide(id, known)
        }
        decision.decideUnknown()
        return decision.actions
    }

    private init(_ view: FolderView) {
        self.view = view
        for (path, _) in view.local { localByKey[key(path)] = path }
        for (id, known) in view.known where view.local[known.path] != nil { owner[known.path] = id }
        findRenames()
        for path in view.local.keys { localFolders.formUnion(path.folders.map(key)) }
        for (id, file) in view.remote where !leavesThere(id, file) {
            remoteFolders.formUnion(file.path.folders.map(key))
        }
        taken = Set(localByKey.keys).union(view.remote.values.map { key($0.path) })
    }

    private func key(_ path: FolderPath) -> [UInt8] {
        Array(view.foldsCase ? path.text.lowercased().utf8 : path.text.utf8)
    }

    private func isSettled(_ id: ItemID) -> Bool { settled.contains(id) || view.ignored.contains(id) }

    /// Finds renames: a missing path and a new one with the same content. Several files with one content are paired by
    /// equal names, and then by the number of equal folders above.
    private mutating func findRenames() {
        guard view.isWalkComplete else { return }
        var vanished: [[UInt8]: [(id: ItemID, path: FolderPath)]] = [:]
        for (id, known) in view.known.sorted(by: { $0.key < $1.key })
        where view.local[known.path] == nil {
            guard view.remote[id] != nil, !view.ignored.contains(id) else { continue }
            vanished[known.content.digest, default: []].append((id, known.path))
        }
        if vanished.isEmpty { return }
        var appeared: [[UInt8]: [FolderPath]] = [:]
        for (path, content) in view.local.sorted(by: { $0.key < $1.key }) where owner[path] == nil {
            if vanished[content.digest] != nil { appeared[content.digest, default: []].append(path) }
        }
        for (digest, paths) in appeared { pair(vanished[digest] ?? [], paths) }
    }

    /// Pairs files with equal content.
    private mutating func pair(_ files: [(id: ItemID, path: FolderPath)], _ paths: [FolderPath]) {
        var (files, paths) = (files, paths)
        let depth = min(files.map(\.path.names.count).max() ?? 0, paths.map(\.names.count).max() ?? 0)
        for length in stride(from: depth, to: 0, by: -1) {
            if files.isEmpty || paths.isEmpty { return }
            var waiting = Dictionary(grouping: paths.filter { $0.names.count >= length }) {
                $0.names.suffix(length)
            }
            .mapValues { Array($0.reversed()) }
            var used: Set<FolderPath> = []
            files = files.filter { id, path in
                guard path.names.count >= length, let next = waiting[path.names.suffix(length)]?.popLast()
                else {
                    return true
                }
                (renamed[id], owner[next]) = (next, id)
                used.insert(next)
                return false
            }
            paths = paths.filter { !used.contains($0) }
        }
        // All empty files have equal content.
        guard files.count == 1, paths.count == 1, view.local[paths[0]]?.byteCount ?? 0 > 0 else {
            return
        }
        (renamed[files[0].id], owner[paths[0]]) = (paths[0], files[0].id)
    }

    // MARK: Names

    /// Decides about items with equal names, and about a file with the name of a folder, in the vault. All devices
    /// decide equally, because the decision depends only on the sealed content of the items.
    private mutating func settleNames() {
        for (id, file) in view.remote.sorted(by: Self.comesFirst) where !view.ignored.contains(id) {
            if let holder = holders[key(file.path)], let other = view.remote[holder] {
                if other.content == file.content, other.path == file.path {
                    holders[key(file.path)] = min(id, holder)
                    settled.insert(max(id, holder))
                    actions.append(.mergeThere(max(id, holder)))
                } else {
                    settled.insert(id)
                    actions.append(.moveThere(id, to: freePath(file.path, id), isHere: false))
                }
            } else {
                holders[key(file.path)] = id
            }
        }
        for (id, file) in view.remote.sorted(by: { $0.key < $1.key }) where !isSettled(id) {
            guard
                remoteFolders.contains(key(file.path))
                    || !leavesThere(id, file) && isAgainstLocalFolder(file.path)
            else { continue }
            settled.insert(id)
            holders[key(file.path)] = nil
            actions.append(.moveThere(id, to: freePath(file.path, id), isHere: false))
        }
    }

    /// Orders files: the last modified one, if known, keeps its name.
    private static func comesFirst(
        _ one: (key: ItemID, value: RemoteFile), _ other: (key: ItemID, value: RemoteFile)
    ) -> Bool {
        let (first, second) = (one.value.modified ?? .min, other.value.modified ?? .min)
        return first == second ? one.key < other.key : first > second
    }

    /// Returns true when the user has deleted or renamed the file in the folder, so that it will leave its path in the
    /// vault.
    private func leavesThere(_ id: ItemID, _ file: RemoteFile) -> Bool {
        guard view.isWalkComplete, let known = view.known[id], view.local[known.path] == nil else { return false }
        return file.path == known.path && (renamed[id] != nil || file.content == known.content)
    }

    /// Returns true when the folder contains a folder of this name that stays.
    private func isAgainstLocalFolder(_ path: FolderPath) -> Bool {
        let name = key(path)
        guard localFolders.contains(name) else { return false }
        return view.local.contains { inner, content in
            inner.folders.contains { key($0) == name } && !goesAway(inner, content)
        }
    }

    /// Returns true when the file was deleted or renamed in the vault, so that it will leave its path in the folder.
    private func goesAway(_ path: FolderPath, _ content: FileContent) -> Bool {
        guard let id = owner[path], let known = view.known[id] else { return false }
        guard let remote = view.remote[id] else { return view.buried.contains(id) && known.content == content }
        return remote.path != path && remote.path != known.path
    }

    /// Settles local files that have the name of another item in the vault. One with the same content belongs to that
    /// item; others are renamed.
    private mutating func settleLocalNames() {
        for (path, content) in view.local.sorted(by: { $0.key < $1.key }) {
            let id = owner[path]
            if let id, isSettled(id) || goesAway(path, content) { continue }
            let holder = holders[key(path)]
            if let holder, holder != id, let remote = view.remote[holder] {
                if let id, renamed[id] == nil { continue }
                if id == nil, isAbsentHere(holder), remote.path == path, remote.content.digest == content.digest {
                    settled.insert(holder)
                    owner[path] = holder
                    actions.append(
                        remote.content == content
                            ? .note(holder, path, content) : .download(holder, to: path, over: content))
                } else {
                    moveAside(path, content)
                }
            } else if remoteFolders.contains(key(path)), id == nil || id.flatMap({ renamed[$0] }) != nil {
                moveAside(path, content)
            }
        }
    }

    /// Returns true when no local file belongs to the item.
    private func isAbsentHere(_ id: ItemID) -> Bool {
        guard let known = view.known[id] else { return true }
        return view.local[known.path] == nil && renamed[id] == nil
    }

    private mutating func moveAside(_ path: FolderPath, _ content: FileContent) {
        movedAside.insert(path)
        if let id = owner[path] { settled.insert(id) }
        let words = "\(view.device), \(view.date)"
        var target = path.conflicting(words)
        var number = 1
        while taken.contains(key(target)) || localFolders.contains(key(target)) {
            number += 1
            target = path.conflicting("\(words), \(number)")
        }
        taken.insert(key(target))
        actions.append(.moveAside(path, to: target, content))
    }

    /// Returns a free path. It contains the item's id and no device or date, so that two devices decide equally at the
    /// same time.
    private mutating func freePath(_ path: FolderPath, _ id: ItemID) -> FolderPath {
        let names = [path.conflicting(String(id.description.prefix(8))), path.conflicting(id.description)]
        // If both names are in use and had to be avoided, a longer one is used.
        let target = names.first { !taken.contains(key($0)) } ?? path.suffixed("conflict, \(id)")
        taken.insert(key(target))
        return target
    }

    /// Returns true when a file can be written at this path now: neither it nor a folder above it is another file.
    private func isFree(_ path: FolderPath, for id: ItemID) -> Bool {
        for place in [path] + path.folders {
            if let local = localByKey[key(place)], owner[local] != id { return false }
        }
        let name = key(path)
        guard localFolders.contains(name) else { return true }
        return !view.local.keys.contains { inner in owner[inner] != id && inner.folders.contains { key($0) == name } }
    }

    // MARK: Known items

    private mutating func decide(_ id: ItemID, _ known: KnownFile) {
        let path = renamed[id] ?? known.path
        let local = view.local[path]
        guard let remote = view.remote[id] else { return decideWithoutRemote(id, known, local) }
        guard let local else { return decideWithoutLocal(id, known, remote) }
        if movedAside.contains(path) { return }
        if remote.path != known.path && remote.path != path {
            guard let successor = successor(of: id, known, at: path) else {
                return moveHere(id, path, remote.path, local)
            }
            settled.insert(successor)
            return actions.append(.note(successor, path, known.content))
        }
        if remote.path != path {
            actions.append(.moveThere(id, to: path, isHere: true))
        } else if local == remote.content {
            if known.path != path || known.content != local || known.stamp != remote.stamp {
                actions.append(.note(id, path, local))
            }
        } else if local == known.content {
            actions.append(.download(id, to: path, over: local))
        } else if remote.content == known.content {
            actions.append(.upload(path, local, over: id))
        } else if local.digest == remote.content.digest || local.digest == known.content.digest {
            // A copy would be treated as a rename, because it has the earlier content.
            actions.append(.download(id, to: path, over: local))
        } else if remote.content.digest == known.content.digest {
            actions.append(.setExecutable(id, path, remote.content.isExecutable))
        } else {
            moveAside(path, local)
        }
    }

    /// Returns the item that has the file's name now and its last synced content. The local file then belongs to that
    /// item, with the user's change.
    private func successor(of id: ItemID, _ known: KnownFile, at path: FolderPath) -> ItemID? {
        guard path == known.path, let holder = holders[key(path)], holder != id, !isSettled(holder),
            isAbsentHere(holder), let file = view.remote[holder], file.path == path, file.content == known.content
        else { return nil }
        return holder
    }

    private mutating func decideWithoutRemote(_ id: ItemID, _ known: KnownFile, _ local: FileContent?) {
        if local == known.content, view.buried.contains(id) {
            if view.isWalkComplete { actions.append(.deleteHere(id, known.path, known.content)) }
        } else if local != nil || view.isWalkComplete {
            actions.append(.forget(id))
            // The next pass sends it as a new file.
            if local != nil { movedAside.insert(known.path) }
        }
    }

    private mutating func decideWithoutLocal(_ id: ItemID, _ known: KnownFile, _ remote: RemoteFile) {
        guard view.isWalkComplete else { return }
        if remote.content == known.content && remote.path == known.path {
            actions.append(.deleteThere(id))
        } else if isFree(remote.path, for: id) {
            actions.append(.download(id, to: remote.path, over: nil))
        }
    }

    private mutating func moveHere(_ id: ItemID, _ from: FolderPath, _ to: FolderPath, _ content: FileContent) {
        if isFree(to, for: id) { return actions.append(.moveHere(id, from: from, to: to, content)) }
        // Files that exchange their names in a cycle: one of them starts.
        var next = localByKey[key(to)].flatMap { owner[$0] }
        var isSmallest = true
        for _ in view.known.indices {
            guard let other = next, other != id, let remote = view.remote[other] else { break }
            if other < id { isSmallest = false }
            next = localByKey[key(remote.path)].flatMap { owner[$0] }
        }
        guard next == id, isSmallest else { return }
        actions.append(.moveHere(id, from: from, to: freePath(to, id), content))
    }

    // MARK: Unknown items

    private mutating func decideUnknown() {
        for (path, content) in view.local.sorted(by: { $0.key < $1.key })
        where owner[path] == nil && !movedAside.contains(path) && holders[key(path)] == nil {
            actions.append(.upload(path, content, over: nil))
        }
        for (id, remote) in view.remote.sorted(by: { $0.key < $1.key })
        where view.known[id] == nil && !isSettled(id) && isFree(remote.path, for: id) {
            actions.append(.download(id, to: remote.path, over: nil))
        }
    }
}
