import Testing

@testable import SalternClient

/// A process that is killed at each of the calls by which it writes, one after the other, before, within and after it:
/// whoever looks afterwards finds the old or the new, and never anything else. ``KilledProcessTests`` and
/// ``FolderKilledTests`` kill real processes at random ones.
@Suite struct EveryCallTests {
    /// Goes through all calls of what `body` does, until it comes to its end.
    private func forEachCall(_ body: (_ call: Int) async throws -> Bool) async throws -> Int {
        for call in 1..<2_000 where try await body(call) { return call }
        Issue.record("it never comes to its end")
        return 0
    }

    private func withPair(_ body: (_ phone: MortalDevice, _ laptop: MortalDevice) async throws -> Void) async throws {
        let server = MemoryServer()
        let laptop = try await MortalDevice("laptop", server, isFirst: true)
        try await body(try await MortalDevice("phone", server, isFirst: false), laptop)
    }

    @Test(arguments: MortalDevice.ends, [true, false])
    func `an item that is written over is the old one or the new one`(end: WriteFault, isSent: Bool) async throws {
        try await withPair { phone, _ in
            let id = ItemID.random()
            var old = "version 0"
            try await phone.put(old, id)
            let calls = try await forEachCall { call in
                if isSent { try await phone.vault().sync() }
                let new = "version \(call)"
                let isDone = try await phone.attempt(end, at: call) { try await $0.put(new, id) }
                let hasFailed = phone.life.hasFailed
                try await phone.startAgain()
                let text = try #require(try await phone.text(id), "call \(call)")
                #expect(text == new || !isDone && text == old, "call \(call)")
                old = text
                return !hasFailed
            }
            #expect(calls > 3)
        }
    }

    @Test(arguments: MortalDevice.ends)
    func `what is sent and fetched is there once, and whole`(end: WriteFault) async throws {
        try await withPair { phone, laptop in
            let (mine, other) = (ItemID.random(), ItemID.random())
            var old = "version 0"
            try await laptop.put(old, other)
            for device in [laptop, phone] { try await device.vault().sync() }
            let calls = try await forEachCall { call in
                let new = "version \(call)"
                try await phone.put(new, mine)
                try await laptop.put(new, other)
                try await laptop.vault().sync()
                _ = try await phone.attempt(end, at: call) { try await $0.vault().sync() }
                let hasFailed = phone.life.hasFailed
                try await phone.startAgain()
                #expect(try await phone.text(mine) == new, "call \(call)")
                #expect(try await [old, new].contains(phone.text(other)), "call \(call)")
                for device in [phone, laptop] {
                    let vault = try device.vault()
                    try await vault.sync()
                    #expect(try await vault.ids("notes") == [mine, other].sorted(), "call \(call)")
                    #expect(try await vault.unsentCount() == 0, "call \(call)")
                    #expect(try await vault.notices().isEmpty, "call \(call)")
                    for id in [mine, other] { #expect(try await device.text(id) == new, "call \(call)") }
                }
                old = new
                return !hasFailed
            }
            #expect(calls > 10)
        }
    }

    @Test(arguments: MortalDevice.ends)
    func `a file that is replaced is the old one or the new one`(end: WriteFault) async throws {
        try await withPair { phone, laptop in
            var old = "version 0"
            try laptop.write(old, to: "file")
            for device in [laptop, phone] { try await device.syncFolder() }
            let calls = try await forEachCall { call in
                let new = "version \(call)"
                try laptop.write(new, to: "file")
                try await laptop.syncFolder()
                _ = try await phone.attempt(end, at: call) { try await $0.syncFolder() }
                let hasFailed = phone.life.hasFailed
                let files = try phone.files()
                #expect(files == ["file": old] || files == ["file": new], "call \(call)")
                try await phone.startAgain()
                for device in [phone, laptop] {
                    try await device.syncFolder()
                    #expect(try device.files() == ["file": new], "call \(call)")
                    #expect(try await device.vault().ids("files").count == 1, "call \(call)")
                }
                old = new
                return !hasFailed
            }
            // Those of the folder alone are more.
            #expect(calls > 30)
        }
    }
}
