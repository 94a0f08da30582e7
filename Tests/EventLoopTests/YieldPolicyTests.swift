import EventLoop
import Testing

@Suite struct GivingWayTests {
    /// Ends the turns, and counts them.
    private final class TurnCounter: IterationObserver {
        let loop: EventLoop
        var isIterationEndRequested = false
        var turns = 0
        var isCounting = true
        /// In which turn a piece of long work was done.
        var pieces: [Int] = []

        init(loop: EventLoop) { self.loop = loop }

        func iterationEnded() {
            turns += 1
            if isCounting { loop.notifyAtIterationEnd(self) }
        }
    }

    @Test func `of all that give way one goes on in each turn, and each in its order`() async throws {
        try await withLoop { loop in
            let (pieces, order) = await loop.run {
                let counter = LoopBound(TurnCounter(loop: loop), loop: loop)
                loop.notifyAtIterationEnd(counter.value)
                let order = await withTaskGroup(of: [Int].self) { group in
                    for worker in 0..<5 {
                        group.addTask {
                            var mine: [Int] = []
                            for _ in 0..<20 {
                                await loop.giveWay()
                                counter.value.pieces.append(counter.value.turns)
                                mine.append(counter.value.pieces.count)
                            }
                            return worker < 0 ? [] : mine
                        }
                    }
                    return await group.reduce(into: [[Int]]()) { $0.append($1) }
                }
                counter.value.isCounting = false
                return (counter.value.pieces, order)
            }
            #expect(pieces.count == 100)
            #expect(Set(pieces).count == 100)
            // Nobody waits longer than until the other four have had a piece each.
            for mine in order { for (one, next) in zip(mine, mine.dropFirst()) { #expect(next - one <= 5) } }
        }
    }

    @Test func `short work has a turn between any two pieces of long work`() async throws {
        try await withLoop { loop in
            let (short, pieces) = await loop.run {
                await withTaskGroup(of: Int.self) { group in
                    let counter = LoopBound(TurnCounter(loop: loop), loop: loop)
                    group.addTask {
                        var count = 0
                        while counter.value.isCounting {
                            count += 1
                            await Task.yield()
                        }
                        return count
                    }
                    for _ in 0..<200 {
                        await loop.giveWay()
                        counter.value.pieces.append(0)
                    }
                    counter.value.isCounting = false
                    return (await group.next() ?? 0, counter.value.pieces.count)
                }
            }
            #expect(pieces == 200)
            #expect(short >= 200)
        }
    }
}
