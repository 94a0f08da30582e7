import AllocationCount
import Postgres

/// A statement of the shape of the hot ones: what is stored, computed, inside of a part, supplied, and used twice.
struct Hot: Sendable {
    struct Content: Sendable {
        let name: String
        let bytes: [UInt8]?
        let iterations: Int32?
    }

    struct Caller: SQLContext {
        enum Parameter: Hashable, Sendable { case account, now }

        let account: Int64
        let now: Int64

        func append(_ parameter: Parameter, to parameters: inout Parameters) {
            switch parameter {
            case .account: parameters.append(account)
            case .now: parameters.append(now)
            }
        }
    }

    let id: Int64
    let content: Content
    var byteCount: Int64 { Int64(content.bytes?.count ?? 0) }

    static let sql: SQLTemplate<Self, Caller> = """
        \(.account) \(\.id) \(\.byteCount) \(\.content.name) \(\.content.bytes) \(\.content.iterations) \(.now) \
        \(.account) \(\.id) \(\.byteCount) \(\.content.name) \(\.content.bytes) \(\.content.iterations) \(.now)
        """
}

/// Binds again and again, as a connection does, and says what that costs.
func measure() {
    let rounds = 200_000
    let content = Hot.Content(name: "notes", bytes: [UInt8](repeating: 5, count: 1_024), iterations: nil)
    let hot = Hot(id: 7, content: content)
    let caller = Hot.Caller(account: 1, now: 2)
    var parameters = Parameters()
    func bind(_ rounds: Int) {
        for _ in 0..<rounds {
            parameters.removeAll()
            Hot.sql.bind(hot, caller, to: &parameters)
        }
    }
    bind(100)
    let before = allocation_count()
    let elapsed = ContinuousClock().measure { bind(rounds) }
    let allocations = allocation_count() - before
    let nanoseconds = elapsed / Double(rounds * parameters.count) / .nanoseconds(1)
    print("\(rounds) times \(parameters.count) parameters: \(allocations) allocations, \(Int(nanoseconds)) ns each")
    // Whatever the library's own start costs, it is not one for each time.
    guard allocations < 100 else { fatalError("binding allocates") }
}

guard Hot.sql.text == "$1 $2 $3 $4 $5 $6 $7 $1 $2 $3 $4 $5 $6 $7" else {
    fatalError("equal literals do not compare equal: \(Hot.sql.text)")
}
measure()
