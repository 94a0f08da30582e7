/// Who holds the places of requests that are being answered: so many in all, and a part of them for each network.
struct RequestPlaces {
    let total: Int
    /// How many places one network may hold.
    let share: Int
    private(set) var taken = 0
    private var takenByNetwork: [UInt64: Int] = [:]

    init(total: Int, share: Int) {
        self.total = total
        self.share = share
    }

    /// Whether there is a place for somebody of this network.
    func hasRoom(for network: UInt64) -> Bool { taken < total && takenByNetwork[network, default: 0] < share }

    /// Takes a place, if there is one.
    mutating func take(for network: UInt64) -> Bool {
        guard hasRoom(for: network) else { return false }
        taken += 1
        takenByNetwork[network, default: 0] += 1
        return true
    }

    /// Gives a place back.
    mutating func give(of network: UInt64) {
        taken -= 1
        let left = takenByNetwork[network, default: 1] - 1
        takenByNetwork[network] = left > 0 ? left : nil
    }
}
