import HTTPCore
import Synchronization
import Testing

@Suite struct MemoryBudgetTests {
    private let budget = MemoryBudget(total: 800, reserve: 700)
    private let ada = MemoryBudget.Owner.account(0, 1)
    private let bob = MemoryBudget.Owner.account(0, 2)

    @Test func `a party has an eighth in several bodies, and no more`() {
        let first = budget.open(for: ada)
        let second = budget.open(for: ada)
        #expect(first.resize(to: 60))
        #expect(second.resize(to: 40))
        #expect(!second.resize(to: 41))
        #expect(second.count == 40)
        #expect(budget.used == 100)
        #expect(budget.open(for: bob).resize(to: 100))
    }

    @Test func `a body beyond the part is the party's only one, and takes nothing of the others' parts`() {
        let large = budget.open(for: ada)
        #expect(large.resize(to: 100))
        #expect(!large.exceedsQuota)
        #expect(large.resize(to: 700))
        #expect(large.exceedsQuota)
        #expect(!large.resize(to: 701))
        #expect(!budget.open(for: ada).resize(to: 1))
        #expect(!budget.open(for: bob).resize(to: 101))
        let others = (0..<9).map { budget.open(for: .address(UInt64($0))) }
        for other in others[..<8] { #expect(other.resize(to: 100)) }
        #expect(!others[8].resize(to: 1))
        #expect(budget.used == 1_500)
        #expect(large.resize(to: 100) == true)
        #expect(budget.open(for: bob).resize(to: 700))
    }

    @Test func `what was charged is given back when it is let go`() {
        do {
            let charge = budget.open(for: ada)
            #expect(charge.resize(to: 90))
            #expect(budget.used(by: ada) == 90)
        }
        #expect(budget.used == 0)
        #expect(budget.used(by: ada) == 0)
    }

    @Test func `eight wait at most, one of a network, and those that were slow make room for others`() {
        let lender = budget.open(for: ada)
        #expect(lender.borrow(700, from: 100) {} == .granted)
        #expect(!lender.isWanted)
        let woken = Mutex<[UInt64]>([])
        func ask(_ charge: MemoryCharge, _ network: UInt64) -> MemoryGrant {
            charge.borrow(300, from: network) { woken.withLock { $0.append(network) } }
        }
        func charge(_ network: UInt64) -> MemoryCharge { budget.open(for: .account(1, network)) }
        var waiting = (0..<8).map(charge)
        for (network, one) in waiting.enumerated() { #expect(ask(one, UInt64(network)) == .waiting) }
        #expect(ask(charge(8), 8) == .refused)
        #expect(lender.isWanted)

        // Four of them are known as slow by now; the last one of these makes room.
        for network in 2..<6 { waiting[network].noteRecall() }
        let newcomer = charge(8)
        #expect(ask(charge(7), 7) == .refused)
        #expect(ask(newcomer, 8) == .waiting)
        #expect(woken.withLock { $0 } == [5])
        #expect(ask(waiting[5], 5) == .refused)
        // Slow ones wait behind the others, and for them nobody gives back.
        let order: [UInt64] = [0, 1, 6, 7, 8, 2, 3, 4]
        waiting.append(newcomer)
        lender.resize(to: 0)
        for network in order {
            #expect(woken.withLock { $0.last } == network)
            #expect(ask(waiting[Int(network)], network) == .granted)
            waiting[Int(network)].resize(to: 0)
        }
        #expect(!budget.isReserveWanted)
        #expect(budget.used == 0)
    }

    @Test func `random charges always add up and never exceed a bound`() {
        var charges: [MemoryCharge] = []
        for _ in 0..<20_000 {
            let memoryOwner = MemoryBudget.Owner.account(0, UInt64.random(in: 0..<6))
            switch Int.random(in: 0..<3) {
            case 0: charges.append(budget.open(for: memoryOwner))
            case 1: if !charges.isEmpty { charges.remove(at: .random(in: charges.indices)) }
            default: charges.randomElement()?.resize(to: .random(in: 0...(Bool.random() ? 100 : 800)))
            }
            #expect(budget.used == charges.reduce(0) { $0 + $1.count })
            #expect(budget.used <= budget.total + budget.reserve)
        }
        charges = []
        #expect(budget.used == 0)
    }

    @Test func `the largest body of every route fits at its peak`() {
        #expect(MemoryFactor.json.peak(of: 24 * 1_048_576) <= ServerBudgets().bodies.reserve)
        #expect(MemoryFactor.bytes.peak(of: 16 * 1_048_576) <= ServerBudgets().bodies.reserve)
        #expect(MemoryFactor.json.peak(of: 1_000) == 2_250)
        #expect(MemoryFactor.bytes.peak(of: 3) == 9)
    }
}
