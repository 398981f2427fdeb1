# Filled in by a tool.
{% for name in names %}
def {{ name }}(:
    pass
{% endfor %}
