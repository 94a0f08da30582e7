import Glibc
import Testing

@testable import SalternClient

/// Every row of the table, and what names can do to each other.
@Suite struct FolderDecisionTests {
    private let id = FolderDecisionTests.item(1)
    private let other = FolderDecisionTests.item(2)

    private static func item(_ number: UInt8) -> ItemID {
        ItemID(bytes: [number] + [UInt8](repeating: 0, count: 15)) ?? .random()
    }

    private func path(_ text: String) throws -> FolderPath { try FolderPath(text) }

    private func content(_ text: String, isExecutable: Bool = false) -> FileContent {
        FileContent(digest: Array(text.utf8), byteCount: Int64(text.utf8.count), isExecutable: isExecutable)
    }

    private enum Here: CaseIterable { case same, changed, missing, moved, movedAndUnseen }
    private enum There: CaseIterable { case same, changed, equallyChanged, deleted, absent, moved, movedAndChanged }

    /// A file that both sides had as `a`, and what has become of it.
    private func view(_ here: Here, _ there: There) throws -> FolderView {
        var view = FolderView(known: [id: KnownFile(path: try path("a"), content: content("old"), stamp: ItemStamp())])
        switch here {
        case .same: view.local = [try path("a"): content("old")]
        case .changed: view.local = [try path("a"): content("mine")]
        case .missing: break
        case .moved: view.local = [try path("b"): content("old")]
        case .movedAndUnseen:
            view.local = [try path("b"): content("old")]
            view.isWalkComplete = false
        }
        switch there {
        case .same: view.remote = [id: RemoteFile(path: try path("a"), content: content("old"))]
        case .changed: view.remote = [id: RemoteFile(path: try path("a"), content: content("theirs"))]
        case .equallyChanged: view.remote = [id: RemoteFile(path: try path("a"), content: content("mine"))]
        case .deleted: view.buried = [id]
        case .absent: break
        case .moved: view.remote = [id: RemoteFile(path: try path("c"), content: content("old"))]
        case .movedAndChanged: view.remote = [id: RemoteFile(path: try path("c"), content: content("theirs"))]
        }
        return view
    }

    @Test func `a permission that changes is a change of the side that it changed on`() throws {
        let a = try path("a")
        let (plain, executable) = (content("old"), content("old", isExecutable: true))
        var view = FolderView(known: [id: KnownFile(path: a, content: plain, stamp: ItemStamp())])
        view.local = [a: executable]
        view.remote = [id: RemoteFile(path: a, content: plain)]
        #expect(FolderDecision.decide(view) == [.upload(a, executable, over: id)])
        view.local = [a: plain]
        view.remote = [id: RemoteFile(path: a, content: executable)]
        #expect(FolderDecision.decide(view) == [.download(id, to: a, over: plain)])
    }

    @Test(arguments: [true, false])
    func `a permission that changes here and a content that changes there are both in the file`(_ isSet: Bool) throws {
        let a = try path("a")
        var view = FolderView(
            known: [id: KnownFile(path: a, content: content("old", isExecutable: !isSet), stamp: ItemStamp())])
        view.local = [a: content("old", isExecutable: isSet)]
        view.remote = [id: RemoteFile(path: a, content: content("theirs", isExecutable: !isSet))]
        var simulation = FolderSimulation(view)
        var report = FolderReport()
        for _ in 0..<4 {
            for action in FolderDecision.decide(simulation.view) { #expect(simulation.carryOut(action, &report)) }
        }
        let merged = content("theirs", isExecutable: isSet)
        #expect(simulation.view.local == [a: merged])
        #expect(simulation.view.remote.mapValues(\.content) == [id: merged])
        #expect(report.downloaded == [a] && report.uploaded == [a] && report.conflicts.isEmpty)
    }

    @Test(arguments: [true, false], [true, false])
    func `a content that changes here and a permission that changes there are both in the file`(
        _ isSet: Bool, changesBoth: Bool
    ) throws {
        let a = try path("a")
        var view = FolderView(
            known: [id: KnownFile(path: a, content: content("old", isExecutable: !isSet), stamp: ItemStamp())])
        view.local = [a: content("mine", isExecutable: changesBoth ? isSet : !isSet)]
        view.remote = [id: RemoteFile(path: a, content: content("old", isExecutable: isSet))]
        #expect(FolderDecision.decide(view) == [.setExecutable(id, a, isSet)])
        var simulation = FolderSimulation(view)
        var report = FolderReport()
        for _ in 0..<4 {
            for action in FolderDecision.decide(simulation.view) { #expect(simulation.carryOut(action, &report)) }
        }
        let merged = content("mine", isExecutable: isSet)
        #expect(simulation.view.local == [a: merged])
        #expect(simulation.view.remote.mapValues(\.content) == [id: merged])
        #expect(report.downloaded == [a] && report.uploaded == [a] && report.conflicts.isEmpty)
    }

    @Test func `a conflict finds a name however long path and device are`() throws {
        let folders = Array(repeating: String(repeating: "d", count: 199), count: 19).joined(separator: "/")
        for name in ["f", String(repeating: "f", count: 190)] {
            let long = try path(folders + "/" + name)
            var view = FolderView(known: [id: KnownFile(path: long, content: content("old"), stamp: ItemStamp())])
            view.local = [long: content("mine")]
            view.remote = [id: RemoteFile(path: long, content: content("theirs"))]
            view.device = FolderPath.words(of: String(repeating: "\u{1F9C2}", count: 64))
            let actions = FolderDecision.decide(view)
            guard case .moveAside(long, let target, content("mine"))? = actions.first else {
                Issue.record("\(actions)")
                continue
            }
            #expect(target != long && target.text.contains("(conflict, "))
            #expect(try FolderPath(target.text) == target)
            // The name that it would have is taken.
            view.local[target] = content("earlier")
            let others = FolderDecision.decide(view).compactMap { action -> FolderPath? in
                if case .moveAside(long, let other, _) = action { other } else { nil }
            }
            let other = try #require(others.first)
            #expect(others.count == 1 && view.local[other] == nil && other.text.contains("(conflict, "))
        }
    }

    @Test(arguments: ["a/b", "\0", "\u{fffd}", "\n", String(repeating: "\u{1F9C2}", count: 64), ""])
    func `whatever a device is called can be part of a name`(device: String) throws {
        let words = FolderPath.words(of: device)
        #expect(words.utf8.count <= 64)
        let target = try path("a").suffixed("conflict, \(words), date, 2")
        #expect(target.text == "a (conflict, \(words), date, 2)")
    }

    @Test(arguments: [
        ("a/b.txt", "a/b (conflict, new).txt"), ("a/b (conflict, phone, 2026-11-26, 2).txt", "a/b (conflict, new).txt"),
        ("b (conflict, v1.2 (mine), 2026-11-26)", "b (conflict, new)"),
        ("b (conflict, 1) (conflict, 2).c", "b (conflict, new).c"),
        ("b (conflict, 1) more.c", "b (conflict, 1) more (conflict, new).c"),
        (" (conflict, 1)", " (conflict, 1) (conflict, new)"),
        (".b (conflict, 1)", ".b (conflict, new)"), ("b (1).c", "b (1) (conflict, new).c"),
    ])
    func `a conflict of a conflict is one of the file that both are of`(name: String, conflict: String) throws {
        #expect(try path(name).conflicting("new").text == conflict)
    }

    @Test func `an item that has both names of a conflict already makes room all the same`() throws {
        let full = try path("a (conflict, \(other))")
        var view = FolderView(remote: [
            id: RemoteFile(path: full, content: content("one"), modified: 2),
            other: RemoteFile(path: full, content: content("two"), modified: 1),
            Self.item(3): RemoteFile(path: try path("a (conflict, 02000000)"), content: content("three")),
        ])
        view.ignored = [Self.item(3)]
        guard case .moveThere(other, let target, isHere: false)? = FolderDecision.decide(view).first else {
            Issue.record("\(FolderDecision.decide(view))")
            return
        }
        #expect(!view.remote.values.contains { $0.path == target })
    }

    @Test(arguments: [
        (Int.max, 5, Int64.max), (Int.min, 5, Int64.min), (-1, 999_999_999, -1), (1, 1, 1_000_000_001),
        (-2, 0, -2_000_000_000),
    ])
    func `times that are too far away are as far as they can be`(seconds: Int, part: Int, nanoseconds: Int64) {
        #expect(timespec(tv_sec: seconds, tv_nsec: part).nanoseconds == nanoseconds)
        let back = timespec(nanoseconds: nanoseconds)
        #expect((0..<1_000_000_000).contains(back.tv_nsec))
        #expect(back.nanoseconds == nanoseconds)
    }

    @Test func `every row of what is known`() throws {
        let (a, b, c) = (try path("a"), try path("b"), try path("c"))
        let (old, mine) = (content("old"), content("mine"))
        let conflict = try path("a (conflict, device, date)")
        let unseen = FolderAction.upload(b, old, over: nil)
        let table: [Here: [There: [FolderAction]]] = [
            .same: [
                .same: [], .changed: [.download(id, to: a, over: old)],
                .equallyChanged: [.download(id, to: a, over: old)], .deleted: [.deleteHere(id, a, old)],
                .absent: [.forget(id)], .moved: [.moveHere(id, from: a, to: c, old)],
                .movedAndChanged: [.moveHere(id, from: a, to: c, old)],
            ],
            .changed: [
                .same: [.upload(a, mine, over: id)], .changed: [.moveAside(a, to: conflict, mine)],
                .equallyChanged: [.note(id, a, mine)], .deleted: [.forget(id)], .absent: [.forget(id)],
                .moved: [.moveHere(id, from: a, to: c, mine)], .movedAndChanged: [.moveHere(id, from: a, to: c, mine)],
            ],
            .missing: [
                .same: [.deleteThere(id)], .changed: [.download(id, to: a, over: nil)],
                .equallyChanged: [.download(id, to: a, over: nil)], .deleted: [.forget(id)], .absent: [.forget(id)],
                .moved: [.download(id, to: c, over: nil)], .movedAndChanged: [.download(id, to: c, over: nil)],
            ],
            .moved: [
                .same: [.moveThere(id, to: b, isHere: true)], .changed: [.moveThere(id, to: b, isHere: true)],
                .equallyChanged: [.moveThere(id, to: b, isHere: true)], .deleted: [.forget(id), unseen],
                .absent: [.forget(id), unseen], .moved: [.moveHere(id, from: b, to: c, old)],
                .movedAndChanged: [.moveHere(id, from: b, to: c, old)],
            ],
            // Nothing is concluded from what was not seen.
            .movedAndUnseen: [
                .same: [unseen], .changed: [unseen], .equallyChanged: [unseen], .deleted: [unseen], .absent: [unseen],
                .moved: [unseen], .movedAndChanged: [unseen],
            ],
        ]
        for here in Here.allCases {
            for there in There.allCases {
                let actions = FolderDecision.decide(try view(here, there))
                #expect(actions == table[here]?[there], "\(here) here, \(there) there")
            }
        }
    }

    @Test func `every row of what is not known`() throws {
        let a = try path("a")
        let theirs = RemoteFile(path: a, content: content("theirs"))
        #expect(FolderDecision.decide(FolderView()) == [])
        #expect(
            FolderDecision.decide(FolderView(local: [a: content("mine")])) == [.upload(a, content("mine"), over: nil)])
        #expect(FolderDecision.decide(FolderView(remote: [id: theirs])) == [.download(id, to: a, over: nil)])
        #expect(
            FolderDecision.decide(FolderView(local: [a: content("theirs")], remote: [id: theirs]))
                == [.note(id, a, content("theirs"))])
        #expect(
            FolderDecision.decide(FolderView(local: [a: content("mine")], remote: [id: theirs]))
                == [.moveAside(a, to: try path("a (conflict, device, date)"), content("mine"))])
        // The same bytes that may be run there: there it is so.
        let executable = RemoteFile(path: a, content: content("theirs", isExecutable: true))
        #expect(
            FolderDecision.decide(FolderView(local: [a: content("theirs")], remote: [id: executable]))
                == [.download(id, to: a, over: content("theirs"))])
    }

    @Test func `a walk that missed something deletes nothing`() throws {
        for there in There.allCases {
            var missing = try view(.missing, there)
            missing.isWalkComplete = false
            #expect(FolderDecision.decide(missing) == [], "\(there)")
        }
        var deleted = try view(.same, .deleted)
        deleted.isWalkComplete = false
        #expect(FolderDecision.decide(deleted) == [])
    }

    @Test func `an empty file, or one of two, is not renamed`() throws {
        let (a, b, c) = (try path("a"), try path("b"), try path("c"))
        var view = FolderView(
            known: [id: KnownFile(path: a, content: content(""))], local: [b: content("")],
            remote: [id: RemoteFile(path: a, content: content(""))])
        #expect(FolderDecision.decide(view) == [.deleteThere(id), .upload(b, content(""), over: nil)])
        view = FolderView(
            known: [id: KnownFile(path: a, content: content("x"))], local: [b: content("x"), c: content("x")],
            remote: [id: RemoteFile(path: a, content: content("x"))])
        #expect(
            FolderDecision.decide(view)
                == [.deleteThere(id), .upload(b, content("x"), over: nil), .upload(c, content("x"), over: nil)])
    }

    @Test func `two items with one name: equal ones become one, else the higher id gets a suffix`() throws {
        let a = try path("a.txt")
        var view = FolderView(remote: [
            id: RemoteFile(path: a, content: content("x")), other: RemoteFile(path: a, content: content("x")),
        ])
        #expect(FolderDecision.decide(view) == [.mergeThere(other), .download(id, to: a, over: nil)])
        view.remote[other]?.content = content("y")
        #expect(
            FolderDecision.decide(view) == [
                .moveThere(other, to: try path("a (conflict, 02000000).txt"), isHere: false),
                .download(id, to: a, over: nil),
            ])
    }

    @Test func `of two items with one name the newest keeps it, and the file that is here with it`() throws {
        let (a, aside) = (try path("a.txt"), try path("a (conflict, 01000000).txt"))
        var view = FolderView(remote: [
            id: RemoteFile(path: a, content: content("x"), modified: 1),
            other: RemoteFile(path: a, content: content("y"), modified: 2),
        ])
        #expect(
            FolderDecision.decide(view) == [
                .moveThere(id, to: aside, isHere: false), .download(other, to: a, over: nil),
            ])
        // Where one of them says nothing, the other one is the newer.
        view.remote[id]?.modified = nil
        #expect(FolderDecision.decide(view).first == .moveThere(id, to: aside, isHere: false))
        view.known = [id: KnownFile(path: a, content: content("y"), stamp: ItemStamp())]
        view.local = [a: content("z")]
        view.remote[id]?.path = aside
        #expect(FolderDecision.decide(view) == [.note(other, a, content("y"))])
        view.remote[other]?.content = content("other")
        #expect(FolderDecision.decide(view) == [.moveHere(id, from: a, to: aside, content("z"))])
        // Equal ones become the lower id, whichever is the newer.
        view = FolderView(remote: [
            id: RemoteFile(path: a, content: content("x"), modified: 1),
            other: RemoteFile(path: a, content: content("x"), modified: 2),
        ])
        #expect(FolderDecision.decide(view) == [.mergeThere(other), .download(id, to: a, over: nil)])
    }

    @Test func `names that the file system takes for one get a suffix`() throws {
        var view = FolderView(remote: [
            id: RemoteFile(path: try path("a"), content: content("x")),
            other: RemoteFile(path: try path("A"), content: content("x")),
        ])
        #expect(
            FolderDecision.decide(view) == [
                .download(id, to: try path("a"), over: nil), .download(other, to: try path("A"), over: nil),
            ])
        view.foldsCase = true
        #expect(
            FolderDecision.decide(view) == [
                .moveThere(other, to: try path("A (conflict, 02000000)"), isHere: false),
                .download(id, to: try path("a"), over: nil),
            ])
    }

    @Test func `where case does not tell folders apart a file is where it is known to be`() throws {
        var view = FolderView(
            known: [id: KnownFile(path: try path("A/c"), content: content("x"))],
            local: [try path("a/c"): content("x"), try path("a/D"): content("y"), try path("b"): content("z")],
            remote: [id: RemoteFile(path: try path("A/c"), content: content("x"))])
        view.foldsCase = true
        view.takeKnownSpellings()
        #expect(Set(view.local.keys) == [try path("A/c"), try path("a/D"), try path("b")])
        // The name of a file itself is another one.
        view.known[id]?.path = try path("A/d")
        view.takeKnownSpellings()
        #expect(Set(view.local.keys) == [try path("A/c"), try path("a/D"), try path("b")])
    }

    @Test func `of a file and a folder of one name the file gets the suffix`() throws {
        let (a, inner) = (try path("a"), try path("a/b"))
        let both = FolderView(remote: [
            id: RemoteFile(path: a, content: content("x")), other: RemoteFile(path: inner, content: content("y")),
        ])
        #expect(
            FolderDecision.decide(both) == [
                .moveThere(id, to: try path("a (conflict, 01000000)"), isHere: false),
                .download(other, to: inner, over: nil),
            ])
        let folderHere = FolderView(
            local: [inner: content("y")], remote: [id: RemoteFile(path: a, content: content("x"))])
        #expect(
            FolderDecision.decide(folderHere) == [
                .moveThere(id, to: try path("a (conflict, 01000000)"), isHere: false),
                .upload(inner, content("y"), over: nil),
            ])
        let fileHere = FolderView(
            local: [a: content("x")], remote: [other: RemoteFile(path: inner, content: content("y"))])
        #expect(
            FolderDecision.decide(fileHere)
                == [.moveAside(a, to: try path("a (conflict, device, date)"), content("x"))])
    }

    @Test func `files that change their names in a circle all arrive`() throws {
        let names = try ["a", "b", "c"].map(path)
        var device = ModelDevice("phone")
        let vault = ModelVault()
        for (index, name) in names.enumerated() {
            let item = Self.item(UInt8(index + 1))
            device.files[name] = content("\(index)")
            device.known[item] = KnownFile(path: name, content: content("\(index)"))
            vault.remote[item] = RemoteFile(path: names[(index + 1) % 3], content: content("\(index)"))
        }
        let hasEnded = device.settle(vault)
        #expect(hasEnded)
        #expect(device.files == [names[1]: content("0"), names[2]: content("1"), names[0]: content("2")])
        #expect(vault.remote.count == 3)
    }

    private func direction(_ recent: Int = 0, isHolding: Bool = false, isAgreed: Bool = false)
        -> FolderDeletionGuard.Direction
    {
        FolderDeletionGuard.Direction(isAgreed: isAgreed, recent: recent, isHolding: isHolding)
    }

    @Test func `many deletions at once are held back, in either direction`() throws {
        let deletions = (0..<26).map { FolderAction.deleteThere(Self.item(UInt8($0))) }
        let others = [FolderAction.forget(id)]
        func held(_ total: Int, _ actions: [FolderAction]) -> [DeletionDirection: Int] {
            var deletions = FolderDeletionGuard(total: total)
            return deletions.permit(actions).held.mapValues(\.count)
        }
        var few = FolderDeletionGuard(total: 1_000)
        let permitted = few.permit(Array(deletions.prefix(25)) + others)
        #expect(permitted.permitted.count == 26 && permitted.noted == [.there])
        // One more in a later pass of the same round is one too many.
        let late = few.permit(Array(deletions.prefix(1))).held
        #expect(late == [.there: [deletions[0]]])
        var many = FolderDeletionGuard(total: 1_000)
        let rest = many.permit(deletions + others).permitted
        #expect(rest == others)
        #expect(held(10, Array(deletions.prefix(4))) == [.there: 4])
        #expect(held(10, Array(deletions.prefix(3))).isEmpty)
        #expect(held(9, Array(deletions.prefix(9))).isEmpty)
        let here = try (0..<4).map { FolderAction.deleteHere(Self.item(UInt8($0)), try path("a"), content("x")) }
        #expect(held(10, here + deletions.prefix(3)) == [.here: 4])
        var off = FolderDeletionGuard(total: 10, [.there: direction(isAgreed: true)])
        let some = off.permit(deletions + here)
        #expect(some.permitted == deletions && some.held == [.here: here])
    }

    @Test func `deletions of the rounds before count, and while some wait all do`() throws {
        let deletion = [FolderAction.deleteThere(Self.item(1))]
        var late = FolderDeletionGuard(total: 1_000, [.there: direction(25)])
        #expect(late.permit(deletion).held == [.there: deletion])
        // Three of ten that were there an hour ago.
        var third = FolderDeletionGuard(total: 7, [.there: direction(3)])
        #expect(third.permit(deletion).held == [.there: deletion])
        var waiting = FolderDeletionGuard(total: 1_000, [.there: direction(isHolding: true)])
        #expect(waiting.permit(deletion).held == [.there: deletion])
        var other = FolderDeletionGuard(total: 1_000, [.here: direction(25, isHolding: true)])
        #expect(other.permit(deletion).permitted == deletion)
    }

    @Test func `many files that are emptied are held back like deletions, in either direction`() throws {
        let empty = FileContent(digest: content("").digest, byteCount: 0, isExecutable: false)
        var view = FolderView()
        var here: [FolderAction] = []
        var there: [FolderAction] = []
        for number in 0..<26 {
            let path = try path("\(number)")
            view.remote[Self.item(UInt8(number))] = RemoteFile(path: path, content: content("\(number)"))
            there.append(.upload(path, empty, over: Self.item(UInt8(number))))
            let other = Self.item(UInt8(100 + number))
            view.remote[other] = RemoteFile(path: try self.path("other \(number)"), content: empty)
            here.append(.download(other, to: path, over: content("\(number)")))
        }
        let news = [FolderAction.upload(try path("new"), empty, over: nil)]
        var deletions = FolderDeletionGuard(total: 1_000)
        let result = deletions.permit(here + there + news, view)
        #expect(result.permitted == news && result.held == [.here: here, .there: there])
    }

    @Test func `a deletion of what is elsewhere, too, is none`() throws {
        var view = FolderView()
        var actions: [FolderAction] = []
        for number in 0..<26 {
            let item = Self.item(UInt8(number))
            view.remote[item] = RemoteFile(path: try path("\(number)"), content: content("\(number)"))
            view.local[try path("copies/\(number)")] = content("\(number)")
            actions.append(.deleteThere(item))
            actions.append(.deleteHere(.random(), try path("old \(number)"), content("\(number)")))
        }
        var deletions = FolderDeletionGuard(total: 1_000)
        #expect(deletions.permit(actions, view).held.isEmpty)
    }

    @Test func `folders with equal files are moved, and nothing in them is deleted`() throws {
        var view = FolderView()
        let names = (0..<30).map { "\($0 % 10)/file \($0)" } + ["__init__.py", "x/__init__.py", "y/x/__init__.py"]
        var expected: Set<FolderAction> = []
        for (number, name) in names.enumerated() {
            let item = Self.item(UInt8(number))
            let isEmpty = name.hasSuffix("__init__.py")
            let file = FileContent(
                digest: content("equal").digest, byteCount: isEmpty ? 0 : 5, isExecutable: false)
            view.known[item] = KnownFile(path: try path("src/" + name), content: file)
            view.remote[item] = RemoteFile(path: try path("src/" + name), content: file)
            view.local[try path("lib/" + name)] = file
            expected.insert(.moveThere(item, to: try path("lib/" + name), isHere: true))
        }
        #expect(Set(FolderDecision.decide(view)) == expected)
    }

    @Test func `of equal files without a name in common only one and one belong together`() throws {
        var view = FolderView()
        for number in 0..<2 {
            view.known[Self.item(UInt8(number))] = KnownFile(path: try path("old \(number)"), content: content("x"))
            view.remote[Self.item(UInt8(number))] = RemoteFile(path: try path("old \(number)"), content: content("x"))
        }
        view.local[try path("new")] = content("x")
        let actions = FolderDecision.decide(view)
        #expect(actions.count { if case .moveThere = $0 { true } else { false } } == 0)
        view.known[Self.item(1)] = nil
        view.remote[Self.item(1)] = nil
        #expect(FolderDecision.decide(view) == [.moveThere(Self.item(0), to: try path("new"), isHere: true)])
    }
}
