/// Somebody who gathers work during a turn of a loop and does it once at the turn's end.
public protocol TurnEndObserver: AnyObject {
    /// Called on the loop's thread after the turn's handlers and jobs.
    func turnEnded()
}
