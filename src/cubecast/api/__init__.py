"""What an application imports: nodes, clients, subscriptions, messages. Behind them is any `net.port.port.Port`."""
