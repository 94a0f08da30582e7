/// What is done when a folder and a vault are not the same: the one place where that is decided. Pure.
///
/// It decides as much as can be done at once. Who has done it looks again, until there is nothing left.
struct FolderDecision {
    let view: FolderView
    private(set) var actions: [FolderAction] = []

    /// Files that were renamed here: the new path of an item.
    private var renamed: [ItemID: FolderPath] = [:]
    /// The item that a local path belongs to.
    private var owner: [FolderPath: ItemID] = [:]
    /// Local paths by name as the file system compares it.
    private var localByKey: [[UInt8]: FolderPath] = [:]
    /// Which item has a path there.
    private var holders: [[UInt8]: ItemID] = [:]
    private var localFolders: Set<[UInt8]> = []
    private var remoteFolders: Set<[UInt8]> = []
    /// Items and local paths that this pass has decided on.
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

    /// A rename is a path that vanished and one that appeared with the same content. Of several with one content those belong
    /// together that have the same name, and most of the folders before it.
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

    /// Pairs files that have one content.
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
        // Empty files have nothing in common but that.
        guard files.count == 1, paths.count == 1, view.local[paths[0]]?.byteCount ?? 0 > 0 else {
            return
        }
        (renamed[files[0].id], owner[paths[0]]) = (paths[0], files[0].id)
    }

    // MARK: Names

    /// Two items with one name, and a file against a folder, there: what is decided is the same on every device, for it is
    /// made of what is sealed in the items.
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

    /// The newest keeps its name, as far as that is known.
    private static func comesFirst(
        _ one: (key: ItemID, value: RemoteFile), _ other: (key: ItemID, value: RemoteFile)
    ) -> Bool {
        let (first, second) = (one.value.modified ?? .min, other.value.modified ?? .min)
        return first == second ? one.key < other.key : first > second
    }

    /// Whether a person has deleted or renamed it here, so that it will not stay there.
    private func leavesThere(_ id: ItemID, _ file: RemoteFile) -> Bool {
        guard view.isWalkComplete, let known = view.known[id], view.local[known.path] == nil else { return false }
        return file.path == known.path && (renamed[id] != nil || file.content == known.content)
    }

    /// Whether a folder of this name is here and stays.
    private func isAgainstLocalFolder(_ path: FolderPath) -> Bool {
        let name = key(path)
        guard localFolders.contains(name) else { return false }
        return view.local.contains { inner, content in
            inner.folders.contains { key($0) == name } && !goesAway(inner, content)
        }
    }

    /// Whether the file here is deleted or renamed there, so that it will not stay.
    private func goesAway(_ path: FolderPath, _ content: FileContent) -> Bool {
        guard let id = owner[path], let known = view.known[id] else { return false }
        guard let remote = view.remote[id] else { return view.buried.contains(id) && known.content == content }
        return remote.path != path && remote.path != known.path
    }

    /// What is here and has the name of another item there makes room.
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

    /// Whether none of the files here is the item.
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

    /// The item's id and no device or date: two devices that decide it at once have to decide the same.
    private mutating func freePath(_ path: FolderPath, _ id: ItemID) -> FolderPath {
        let names = [path.conflicting(String(id.description.prefix(8))), path.conflicting(id.description)]
        // Who has both names already, and had to make room there, is called more than that.
        let target = names.first { !taken.contains(key($0)) } ?? path.suffixed("conflict, \(id)")
        taken.insert(key(target))
        return target
    }

    /// Whether a file can be put there now: nothing else is there, and no file where a folder has to be.
    private func isFree(_ path: FolderPath, for id: ItemID) -> Bool {
        for place in [path] + path.folders {
            if let local = localByKey[key(place)], owner[local] != id { return false }
        }
        let name = key(path)
        guard localFolders.contains(name) else { return true }
        return !view.local.keys.contains { inner in owner[inner] != id && inner.folders.contains { key($0) == name } }
    }

    // MARK: What is known

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
            // A copy would be taken for the file under another name: it has the content of before.
            actions.append(.download(id, to: path, over: local))
        } else if remote.content.digest == known.content.digest {
            actions.append(.setExecutable(id, path, remote.content.isExecutable))
        } else {
            moveAside(path, local)
        }
    }

    /// The item that has the file's name now and its content as it was known: the file here is that one's, with what a person
    /// has changed in it.
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
            // It goes up again as a new file when this is done.
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
        // Files that change their names in a circle: one of them makes the first step.
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

    // MARK: What is not known

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
